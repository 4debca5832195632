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

    ``weights`` is one matrix with a row for each network, ``gradient`` its gradient, and ``parts`` and ``gradients`` are
    views of them by name. ``cell`` maps the inputs, a constant 1 among them, and the state to four blocks: the input's
    part of the candidate n, the gates z and r, and the state's part of the candidate, c, which r multiplies. Where torch
    has no weight, of the input in c and of the state in n, it is 0 and stays so. ``bias`` is the state's.
    """

    def __init__(self, models: Sequence[RecurrentActorCritic]) -> None:
        first = models[0]
        self.count, self.actions = len(models), first.no_action
        self.one = first.gru.input_size  # the input after the last one is the constant
        self.width = width = padded(first.hidden_size)
        self.inputs, outputs = padded(self.one + 1), padded(self.actions + 1, 8)
        shapes = {
            "cell": (self.inputs + width, 4 * width),
            "bias": (1, 4 * width),
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
                    shapes.items(), whole[:, : sum(sizes)].split_with_sizes(sizes, 1), strict=True
                )
            }
            for whole in (self.weights.detach(), self.gradient)
        )
        self.mask = torch.ones(shapes["cell"], dtype=dtype)
        """1 where ``cell`` has a weight."""
        self.mask[: self.inputs, 3 * width :] = self.mask[self.inputs :, :width] = 0
        observations = self.one - self.actions - 1
        self.codes = torch.zeros(observations * (self.actions + 1), self.inputs, dtype=dtype)
        """The inputs for each pair of an observation and a previous action: (o, a) is row o · (actions + 1) + a."""
        pairs = torch.arange(len(self.codes))
        self.codes[pairs, pairs // (self.actions + 1)] = 1
        shown = pairs % (self.actions + 1) if first.previous_action else self.actions
        self.codes[pairs, observations + shown] = 1
        self.codes[:, self.one] = 1
        self.read(models)

    def _parts(self, model: RecurrentActorCritic, of: dict[str, Tensor], row: int) -> Iterator[tuple[Tensor, Tensor]]:
        """A network's parameters in torch's order of gates (r, z, n), each with the same numbers in the stack."""
        cell, heads = of["cell"][row], of["heads"][row]
        bias, heads_bias = of["bias"][row, 0], of["heads_bias"][row, 0]
        size, actions = model.hidden_size, self.actions
        gru: dict[str, Tensor] = dict(model.gru.named_parameters())
        for k, (input_block, state_block) in enumerate(((2, 2), (1, 1), (0, 3))):
            rows = slice(k * size, (k + 1) * size)
            given, kept = (slice(x * self.width, x * self.width + size) for x in (input_block, state_block))
            yield gru["weight_ih_l0"][rows], cell[: self.one, given].t()
            yield gru["bias_ih_l0"][rows], cell[self.one, given]
            yield gru["weight_hh_l0"][rows], cell[self.inputs : self.inputs + size, kept].t()
            yield gru["bias_hh_l0"][rows], bias[kept]
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

    def turn(self, given: Tensor) -> Tensor:
        """The state after one turn of the GRU; ``given`` holds inputs and state, ``(networks, rows, both)``."""
        width = self.width
        blocks = torch.baddbmm(self.parts["bias"], given, self.parts["cell"])
        fresh, gates, carried = blocks.split_with_sizes([width, 2 * width, width], -1)
        z, r = gates.sigmoid().split_with_sizes([width, width], -1)
        return torch.lerp(torch.addcmul(fresh, r, carried).tanh_(), given[..., self.inputs :], z)

    def heads(self, states: Tensor) -> Tensor:
        """Logits, the value in the column after them, and 0 in the rest; ``states`` are ``(networks, rows, width)``."""
        return torch.baddbmm(self.parts["heads_bias"], states, self.parts["heads"])


class Tape:
    """Whole episodes forwards and backwards, with room for all their turns that is used again and again.

    With :math:`\\delta_t` the gradient of the loss with respect to the state after turn t, through all that follows,

    .. math:: \\delta_t^n = \\delta_t (1-z)(1-n^2), \\quad \\delta_t^z = \\delta_t (h_{t-1}-n) z(1-z), \\quad
              \\delta_t^r = \\delta_t^n\\, c\\, r(1-r), \\quad \\delta_t^c = \\delta_t^n r

    are those before the candidate n, the gates z and r, and what r multiplies, c. The factors are made for all turns at
    once, so that a turn is left with five operations.
    """

    def __init__(self, stack: Stack, turns: int, height: int) -> None:
        width = stack.width

        def room(size: int, turns: int = turns) -> Tensor:
            return stack.weights.new_zeros(stack.count, turns, height, size)

        self.stack, self.turns, self.height = stack, turns, height
        self.given = room(stack.inputs + width, turns + 1)  # of each turn the inputs, and the state before it
        self.given[..., stack.one] = 1
        self.gates, self.blocks = room(4 * width), room(4 * width)  # n, z, r, c, and the gradients before them
        self.of_total, self.of_candidate, self.slopes = room(2 * width), room(2 * width), room(2 * width)
        self.inner = room(width)
        self.rows: list[int] = []
        self._views: dict[tuple[int, int], tuple[tuple[Tensor, ...], ...]] = {}

    def load(self, inputs: Tensor, rows: Sequence[int]) -> None:
        """What is played: ``inputs`` of shape ``(networks, turns, rows, inputs)``.

        Of turn t only the first ``rows[t]`` rows are computed, and these numbers never grow. Turns after the last one,
        which fill up a chunk, are not computed at all.
        """
        self.rows, self.loaded = list(rows), inputs.shape[1]
        self.given[:, : self.loaded, :, : self.stack.inputs] = inputs
        self.blocks.zero_()

    def _turn(self, t: int, rows: int) -> tuple[tuple[Tensor, ...], ...]:
        """Views of one turn, those that :meth:`forward` reads and those of :meth:`backward`."""
        if (t, rows) not in self._views:
            width, inputs, count = self.stack.width, self.stack.inputs, self.stack.count
            given, after, gates, block, total, of_total, of_candidate = (
                x[:, t, :rows]
                for x in (
                    *(self.given, self.given[:, 1:], self.gates, self.blocks),
                    *(self.inner, self.of_total, self.of_candidate),
                )
            )
            # Products into a view are made one by one: they go into a room of their own.
            made, passed, later = (given.new_empty(count, rows, k * width) for k in (4, 1, 1))
            sizes, pair = [width, 2 * width, width], (count, rows, 2, width)
            n, zr, c = gates.split_with_sizes(sizes, -1)
            z, r = zr.split_with_sizes([width, width], -1)
            self._views[t, rows] = (
                (given, given[..., inputs:], made, *made.split_with_sizes(sizes, -1)),
                (n, zr, c, z, r, after[..., inputs:]),
                (total.unsqueeze(2), of_total.view(pair), block[..., : 2 * width].view(pair)),
                (block[..., None, :width], of_candidate.view(pair), block[..., 2 * width :].view(pair)),
                (total, z, passed, block[..., width:], later, self.inner[:, t - 1, :rows]),
            )
        return self._views[t, rows]

    def forward(self) -> Tensor:
        """The outputs of the heads, ``(networks, turns · rows, outputs)``."""
        cell, bias = self.stack.parts["cell"], self.stack.parts["bias"]
        for t, rows in enumerate(self.rows):
            (given, before, made, fresh, gates, carried), (n, zr, c, z, r, after), *_ = self._turn(t, rows)
            torch.baddbmm(bias, given, cell, out=made)
            torch.sigmoid(gates, out=zr)
            c.copy_(carried)
            torch.addcmul(fresh, r, carried, out=n).tanh_()
            torch.lerp(n, before, z, out=after)
        return self.stack.heads(self._after()[..., self.stack.inputs :])

    def _after(self) -> Tensor:
        return self.given[:, 1 : self.loaded + 1].flatten(1, 2)

    def backward(self, outer: Tensor) -> None:
        """The stack's ``gradient``, from ``outer``, that of what :meth:`forward` returned."""
        stack, width = self.stack, self.stack.width
        on = slice(self.loaded)
        n, zr, c = self.gates[:, on].split_with_sizes([width, 2 * width, width], -1)
        z, r = zr.split_with_sizes([width, width], -1)
        slopes = torch.addcmul(zr, zr, zr, value=-1, out=self.slopes[:, on])
        of_n, of_z = self.of_total[:, on].split_with_sizes([width, width], -1)
        torch.sub(1, z, out=of_n)
        torch.addcmul(of_n, of_n, n * n, value=-1, out=of_n)
        torch.sub(self.given[:, on, :, stack.inputs :], n, out=of_z).mul_(slopes[..., :width])
        of_r, of_c = self.of_candidate[:, on].split_with_sizes([width, width], -1)
        torch.mul(c, slopes[..., width:], out=of_r)
        of_c.copy_(r)

        inner = torch.bmm(outer, stack.parts["heads"].transpose(1, 2))
        self.inner[:, on] = inner.view(stack.count, self.loaded, self.height, width)
        back = stack.parts["cell"][:, stack.inputs :, width:].transpose(1, 2)
        for t in range(len(self.rows) - 1, -1, -1):
            _, _, first, second, (total, z, passed, of_kept, later, earlier) = self._turn(t, self.rows[t])
            torch.mul(first[0], first[1], out=first[2])
            torch.mul(second[0], second[1], out=second[2])
            if t:
                torch.mul(total, z, out=passed)
                earlier += torch.baddbmm(passed, of_kept, back, out=later)

        before, after = self.given[:, on].flatten(1, 2).transpose(1, 2), self._after().transpose(1, 2)
        blocks = self.blocks[:, on].flatten(1, 2)
        of_cell, of_heads = stack.weights.new_zeros(()), stack.weights.new_zeros(())
        for start in range(0, blocks.shape[1], CHUNK * self.height):
            part = slice(start, start + CHUNK * self.height)
            of_cell = of_cell + torch.bmm(before[..., part], blocks[:, part])
            of_heads = of_heads + torch.bmm(after[..., part], outer[:, part])
        gradient = stack.gradients
        torch.mul(of_cell, stack.mask, out=gradient["cell"])
        gradient["bias"][..., width:] = of_cell[:, stack.one : stack.one + 1, width:]
        gradient["heads"].copy_(of_heads[:, stack.inputs :])
        gradient["heads_bias"].copy_(of_heads[:, stack.one : stack.one + 1])
