"""Several networks of one shape as one: weights with a leading dimension of networks, and products of batches.

A :class:`Stack` computes what :class:`keydoor.policy.RecurrentActorCritic` does, for all its networks at once, and the
gradient by hand: back through time a turn at a time, and the weights' part as one product at the end. Beside the
generic machinery that leaves some ten small operations per turn, which is what a network of this size costs.

**Company does not matter**, to the last bit: a network's numbers are the same in a stack of one and of many. For that

* each product is one of :func:`torch.bmm`, whose slices do not depend on how many there are;
* nothing is summed over turns but in such products, whose lengths the settings fix (:data:`CHUNK` turns of all rows at
  a time; what is not played adds exact zeros);
* rows, inputs, units and outputs are padded, with exact zeros, to multiples that leave nothing to the scalar rest of a
  vectorised loop, and put each slice on the same boundary of memory: either may round otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from keydoor.policy import RecurrentActorCritic

ROWS = 16
"""The episodes of one network, its inputs and its units are padded to a multiple of this."""
CHUNK = 8
"""The weights' gradient is summed over so many turns at a time."""


def padded(size: int, to: int = ROWS) -> int:
    return -(-size // to) * to


class Stack:
    """The weights of equally large networks, with the operations of a turn.

    ``weights`` is one matrix with a row for each network, ``gradient`` its gradient, and everything else here is a view
    of one of them or can be made anew from it. The gates are ordered (n, z, r) on the side of the input and (z, r, n)
    on the side of the state, so that the two gradients overlap in one block (n, z, r, n).
    """

    def __init__(self, models: Sequence[RecurrentActorCritic]) -> None:
        first = models[0]
        self.count, self.actions = len(models), first.no_action
        self.bias = first.gru.input_size  # the input after the last one is a constant 1: its weights are the biases
        self.width = width = padded(first.hidden_size)
        inputs, outputs = padded(self.bias + 1), padded(self.actions + 1, 8)
        shapes = {
            "input": (inputs, 3 * width),
            "state": (width, 3 * width),
            "state_bias": (1, 3 * width),
            "heads": (width, outputs),
            "heads_bias": (1, outputs),
        }
        sizes = [rows * columns for rows, columns in shapes.values()]
        dtype = first.value_head.weight.dtype
        self.weights = torch.nn.Parameter(torch.zeros(self.count, padded(sum(sizes)), dtype=dtype))
        self.gradient = torch.zeros_like(self.weights)
        self.weights.grad = self.gradient
        self.parts, self.gradients = (
            {
                name: part.view(self.count, *shape)
                for (name, shape), part in zip(
                    shapes.items(), torch.split(whole[:, : sum(sizes)], sizes, 1), strict=True
                )
            }
            for whole in (self.weights.detach(), self.gradient)
        )
        observations = self.bias - self.actions - 1
        self.codes = torch.zeros(observations * (self.actions + 1), inputs, dtype=dtype)
        """The inputs for each pair of an observation and a previous action: (o, a) is row o · (actions + 1) + a."""
        pairs = torch.arange(len(self.codes))
        self.codes[pairs, pairs // (self.actions + 1)] = 1
        shown = pairs % (self.actions + 1) if first.previous_action else self.actions
        self.codes[pairs, observations + shown] = 1
        self.codes[:, self.bias] = 1
        self.read(models)

    def _parts(self, model: RecurrentActorCritic, of: dict[str, Tensor], row: int) -> Iterator[tuple[Tensor, Tensor]]:
        """A network's parameters in torch's order of gates (r, z, n), each with the same numbers in the stack."""
        inputs, state, heads = of["input"][row], of["state"][row], of["heads"][row]
        state_bias, heads_bias = of["state_bias"][row, 0], of["heads_bias"][row, 0]
        size, actions = model.hidden_size, self.actions
        gru: dict[str, Tensor] = dict(model.gru.named_parameters())
        for k, place in enumerate((1, 0, 2)):
            rows = slice(k * size, (k + 1) * size)
            columns = slice(place * self.width, place * self.width + size)
            turned = slice((place + 1) % 3 * self.width, (place + 1) % 3 * self.width + size)
            yield gru["weight_ih_l0"][rows], inputs[: self.bias, turned].t()
            yield gru["bias_ih_l0"][rows], inputs[self.bias, turned]
            yield gru["weight_hh_l0"][rows], state[:size, columns].t()
            yield gru["bias_hh_l0"][rows], state_bias[columns]
        yield model.policy_head.weight, heads[:size, :actions].t()
        yield model.policy_head.bias, heads_bias[:actions]
        yield model.value_head.weight, heads[:size, actions : actions + 1].t()
        yield model.value_head.bias, heads_bias[actions : actions + 1]

    @torch.no_grad()
    def read(self, models: Sequence[RecurrentActorCritic]) -> None:
        """Take over the weights of the networks."""
        for row, model in enumerate(models):
            for theirs, ours in self._parts(model, self.parts, row):
                ours.copy_(theirs)

    @torch.no_grad()
    def write(self, models: Sequence[RecurrentActorCritic]) -> None:
        """Give the networks these weights."""
        for row, model in enumerate(models):
            for theirs, ours in self._parts(model, self.parts, row):
                theirs.copy_(ours)

    @torch.no_grad()
    def write_gradient(self, models: Sequence[RecurrentActorCritic]) -> None:
        """Give the networks this gradient."""
        for row, model in enumerate(models):
            parameters = list(model.parameters())
            values = [parameter.clone() for parameter in parameters]
            for theirs, ours in self._parts(model, self.gradients, row):
                theirs.copy_(ours)
            for parameter, value in zip(parameters, values, strict=True):
                parameter.grad = parameter.clone()
                parameter.copy_(value)

    def initial_state(self, rows: int) -> Tensor:
        return self.weights.new_zeros(self.count, rows, self.width)

    def turn(self, inputs: Tensor, state: Tensor) -> Tensor:
        """The state after one turn of the GRU; ``inputs`` has shape ``(networks, rows, inputs)``."""
        width = self.width
        fresh, update = torch.split(torch.bmm(inputs, self.parts["input"]), [width, 2 * width], -1)
        kept = torch.baddbmm(self.parts["state_bias"], state, self.parts["state"])
        held, multiplied = torch.split(kept, [2 * width, width], -1)
        z, r = torch.split((update + held).sigmoid_(), width, -1)
        return torch.lerp(torch.addcmul(fresh, r, multiplied).tanh_(), state, z)

    def heads(self, states: Tensor) -> Tensor:
        """Logits, the value in the column after them, and 0 in the rest; ``states`` are ``(networks, rows, width)``."""
        return torch.baddbmm(self.parts["heads_bias"], states, self.parts["heads"])


class Tape:
    """Whole episodes forwards and backwards, with room for all their turns that each gradient step uses again.

    ``inputs`` has shape ``(networks, turns, rows, inputs)``. Of turn t only the first ``rows[t]`` rows are computed,
    and these numbers never grow; turns after the last one, which fill up a chunk, are not computed at all. With
    :math:`\\delta_t` the gradient of the loss with respect to the state after turn t, through all that follows,

    .. math:: \\delta_t^n = \\delta_t (1-z)(1-n^2), \\quad \\delta_t^z = \\delta_t (h_{t-1}-n) z(1-z), \\quad
              \\delta_t^r = \\delta_t^n\\, c\\, r(1-r), \\quad \\delta_t^c = \\delta_t^n r

    are those before the candidate n, the gates z and r, and what r multiplies, c. The factors are made for all turns at
    once, so that a turn is left with five operations.
    """

    def __init__(self, stack: Stack, inputs: Tensor, rows: Sequence[int]) -> None:
        count, turns, height, _ = inputs.shape
        width = stack.width

        def room(*shape: int) -> Tensor:
            return stack.weights.new_zeros(count, *shape)

        self.stack, self.inputs = stack, inputs.flatten(1, 2)
        self.states = room(turns + 1, height, width)
        self.before, self.after = self.states[:, :-1], self.states[:, 1:].flatten(1, 2)
        self.seen, self.inner = room(turns * height, 3 * width), room(turns * height, width)
        self.gates, self.candidates, self.carried = (room(turns, height, k * width) for k in (2, 1, 1))
        self.of_total, self.of_candidate, self.slopes = (room(turns, height, 2 * width) for _ in range(3))
        self.blocks = room(turns, height, 4 * width)  # the gradients before n, z, r and c
        seen, inner = (x.view(count, turns, height, -1) for x in (self.seen, self.inner))
        self.forwards, self.backwards = [], []
        for t, running in enumerate(rows):
            new, gates, candidate, carried, given, total, block, of_total, of_candidate = (
                x[:, t, :running]
                for x in (
                    *(self.states[:, 1:], self.gates, self.candidates, self.carried, seen),
                    *(inner, self.blocks, self.of_total, self.of_candidate),
                )
            )
            z, r = torch.split(gates, width, -1)
            kept = room(running, 3 * width)  # a result that is no view: products into a view are made one by one
            self.forwards.append(
                (
                    (self.before[:, t, :running], kept),
                    (*torch.split(given, [width, 2 * width], -1), *torch.split(kept, [2 * width, width], -1)),
                    (gates, z, r, candidate, carried, new),
                )
            )
            pair = (count, running, 2, width)
            self.backwards.append(
                (
                    (total.unsqueeze(2), of_total.view(pair), block[..., : 2 * width].view(pair)),
                    (block[..., None, :width], of_candidate.view(pair), block[..., 2 * width :].view(pair)),
                    (total, z, room(running, width), block[..., width:], room(running, width)),
                    inner[:, t - 1, :running] if t else None,
                )
            )

    def forward(self) -> Tensor:
        """The outputs of the heads, ``(networks, turns · rows, outputs)``."""
        of = self.stack.parts
        torch.bmm(self.inputs, of["input"], out=self.seen)
        weights, bias = of["state"], of["state_bias"]
        for (old, kept), (fresh, update, held, multiplied), (gates, z, r, candidate, carried, new) in self.forwards:
            torch.baddbmm(bias, old, weights, out=kept)
            torch.add(update, held, out=gates).sigmoid_()
            carried.copy_(multiplied)
            torch.addcmul(fresh, r, multiplied, out=candidate).tanh_()
            torch.lerp(candidate, old, z, out=new)
        return self.stack.heads(self.after)

    def backward(self, outer: Tensor) -> None:
        """The stack's ``gradient``, from ``outer``, that of what :meth:`forward` returned."""
        width, of, gradient = self.stack.width, self.stack.parts, self.stack.gradients
        torch.bmm(outer, of["heads"].transpose(1, 2), out=self.inner)
        n, (z, r) = self.candidates, torch.split(self.gates, width, -1)
        torch.addcmul(self.gates, self.gates, self.gates, value=-1, out=self.slopes)
        of_n, of_z = torch.split(self.of_total, width, -1)
        torch.sub(1, z, out=of_n)
        torch.addcmul(of_n, of_n, n * n, value=-1, out=of_n)
        torch.sub(self.before, n, out=of_z).mul_(self.slopes[..., :width])
        of_r, of_c = torch.split(self.of_candidate, width, -1)
        torch.mul(self.carried, self.slopes[..., width:], out=of_r)
        of_c.copy_(r)
        back = of["state"].transpose(1, 2)
        for first, second, (total, z, passed, of_kept, later), earlier in reversed(self.backwards):
            torch.mul(first[0], first[1], out=first[2])
            torch.mul(second[0], second[1], out=second[2])
            if earlier is not None:
                torch.mul(total, z, out=passed)
                earlier += torch.baddbmm(passed, of_kept, back, out=later)
        self.stack.gradient.zero_()
        bias = slice(self.stack.bias, self.stack.bias + 1)
        height = self.blocks.shape[2]
        turned, kept = self.inputs.transpose(1, 2), self.before.flatten(1, 2).transpose(1, 2)
        blocks, ended = self.blocks.flatten(1, 2), self.after.transpose(1, 2)
        for start in range(0, blocks.shape[1], CHUNK * height):
            part = slice(start, start + CHUNK * height)
            of_inputs = torch.bmm(turned[..., part], blocks[:, part])
            gradient["input"] += of_inputs[..., : 3 * width]
            gradient["state_bias"] += of_inputs[:, bias, width:]
            gradient["state"] += torch.bmm(kept[..., part], blocks[:, part, width:])
            gradient["heads"] += torch.bmm(ended[..., part], outer[:, part])
            gradient["heads_bias"] += torch.bmm(turned[..., part], outer[:, part])[:, bias]
