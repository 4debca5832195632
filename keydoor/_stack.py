"""Several networks of one shape as one: weights with a leading dimension of networks, and products of batches.

A :class:`Stack` computes what :class:`keydoor.policy.RecurrentActorCritic` does, for all its networks at once, and a
:class:`Tape` the gradient by hand, back through time. Beside the generic machinery that leaves some fifteen small
operations per turn, which is what a network of this size costs.

**Company does not matter**, to the last bit: a network's numbers are the same in a stack of one and of many. For that

* each product is one of :func:`torch.bmm`, whose slices do not depend on how many there are;
* nothing is summed over turns or episodes but in such products, of at most :data:`CHUNK` rows, few enough to be summed
  in one go: rows that are there for another network's sake add exact zeros;
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
CHUNK = 64
"""The weights' gradient is summed over so many rows of a turn at a time."""


def padded(size: int) -> int:
    return -(-size // ROWS) * ROWS


class Stack:
    """The weights of equally large networks, with the operations of a turn.

    ``weights`` is one matrix with a row for each network, ``gradient`` its gradient, and ``parts`` and ``gradients``
    are views of them by name. ``cell`` maps the inputs, a constant 1 among them, and the state to four blocks: the
    input's part of the candidate n, the gates z and r, and the state's part of the candidate, c, which r multiplies.
    Where torch has no weight, of the input in c and of the state in n, it is 0 and stays so. ``bias`` is the state's.
    ``heads`` maps a constant 1, :data:`ROWS` - 1 zeros and the state to the logits, the value, and zeros.
    """

    def __init__(self, models: Sequence[RecurrentActorCritic]) -> None:
        first = models[0]
        self.count, self.actions = len(models), first.no_action
        self.one = first.gru.input_size  # the input after the last one is the constant
        self.width = width = padded(first.hidden_size)
        self.inputs, outputs = padded(self.one + 1), padded(self.actions + 1)
        shapes = {
            "cell": (self.inputs + width, 4 * width),
            "bias": (1, 4 * width),
            "heads": (ROWS + width, outputs),
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
        cell, bias = of["cell"][row], of["bias"][row, 0]
        heads_bias, heads = of["heads"][row, 0], of["heads"][row, ROWS:]
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

    def cell(self) -> Tensor:
        """The weights of ``cell`` with both biases in the row of the constant."""
        joined = self.parts["cell"].clone(memory_format=torch.contiguous_format)
        joined[:, self.one] += self.parts["bias"][:, 0]
        return joined

    def turn(self, given: Tensor, cell: Tensor, after: Tensor) -> Tensor:
        """One turn of the GRU and the outputs of the heads, ``(networks, rows, outputs)``: logits, value, zeros.

        ``given`` holds inputs and state, ``(networks, rows, both)``; the new state goes into ``after``, which holds a
        constant 1 and zeros in front of it.
        """
        width = self.width
        fresh, gates, carried = torch.bmm(given, cell).split_with_sizes([width, 2 * width, width], -1)
        z, r = gates.sigmoid_().split_with_sizes([width, width], -1)
        candidate = fresh.addcmul_(r, carried).tanh_()
        torch.lerp(candidate, given[..., self.inputs :], z, out=after[..., ROWS:])
        return torch.bmm(after, self.parts["heads"])

    def room_after(self, *shape: int) -> Tensor:
        """Room for the states after a turn, with the constant in front."""
        after = self.weights.new_zeros(*shape, ROWS + self.width)
        after[..., 0] = 1
        return after


class Tape:
    """The episodes of an update, forwards and backwards, as often as there are gradient steps.

    Turn t has ``rows[t]`` rows of each network, and these numbers never grow. What belongs to a turn lies together,
    ``(networks, rows[t], …)``, and the turns lie one after the other: so do the rows of ``inputs`` and of the outputs.
    With :math:`\\delta_t` the gradient of the loss with respect to the state after turn t, through all that follows,

    .. math:: \\delta_t^n = \\delta_t (1-z)(1-n^2), \\quad \\delta_t^z = \\delta_t (h_{t-1}-n) z(1-z), \\quad
              \\delta_t^r = \\delta_t^n\\, c\\, r(1-r), \\quad \\delta_t^c = \\delta_t^n r

    are those before the candidate n, the gates z and r, and what r multiplies, c.
    """

    def __init__(self, stack: Stack, inputs: Tensor, rows: Sequence[int]) -> None:
        self.stack, self.rows = stack, rows
        count, width, total = stack.count, stack.width, len(inputs)

        def room(size: int) -> Tensor:
            return inputs.new_empty(total, size)

        def by_turn(x: Tensor) -> list[Tensor]:
            parts = x.split_with_sizes([count * n for n in rows])
            return [part.view(count, n, -1) for part, n in zip(parts, rows, strict=True)]

        self.outputs = room(stack.parts["heads"].shape[-1])
        self.outer = torch.zeros_like(self.outputs)
        """Where the gradient with respect to the outputs goes; 0 where there is no logit and no value."""
        # Of the gates, in this order: n, z, r, c.
        given, gates, after, outputs, outer = (
            by_turn(x)
            for x in (
                torch.cat([inputs, inputs.new_zeros(total, width)], dim=1),
                *(room(4 * width), stack.room_after(total), self.outputs, self.outer),
            )
        )
        sizes, half = [width, 2 * width, width], [width, width]
        scratch: dict[int, tuple[Tensor, ...]] = {}  # what is done with when the turn is: shared by turns of equal size
        for size in set(rows):
            # The gradients of the state after the turn, before n, z, r, c, and of the state before the turn.
            after_turn, block, passed, before_turn, of_gates = (
                inputs.new_empty(count, size, k * width) for k in (1, 4, 1, 1, 2)
            )
            inner = (*block.split_with_sizes(sizes, -1), *of_gates.split_with_sizes(half, -1), of_gates)
            scratch[size] = (after_turn, passed, before_turn, block, block[..., width:], *inner)
        self._forwards, self._backwards = [], []
        for t, rows_now in enumerate(rows):
            n, zr, c = gates[t].split_with_sizes(sizes, -1)
            z, r = zr.split_with_sizes(half, -1)
            before, state = given[t][..., stack.inputs :], after[t][..., ROWS:]
            shared = rows[t + 1] if t + 1 < len(rows) else 0
            following = given[t + 1][..., stack.inputs :] if shared else before[:, :0]
            forth = (following, state[:, :shared], after[t], outputs[t])
            self._forwards.append(((given[t], gates[t], zr), (n, r, c, before, z, state), forth))
            chunks = [
                (given[t][:, part].transpose(1, 2), part, outer[t][:, part].transpose(1, 2), after[t][:, part])
                for part in (slice(start, start + CHUNK) for start in range(0, rows_now, CHUNK))
            ]
            self._backwards.append(((n, z, r, c, zr, before), outer[t], shared, scratch[rows_now], chunks))

    def forward(self) -> Tensor:
        """The outputs of the heads at all turns, one row for each row of ``inputs``."""
        cell, heads = self.stack.cell(), self.stack.parts["heads"]
        for (given, gates, zr), (n, r, c, before, z, state), (following, shared, after, outputs) in self._forwards:
            torch.bmm(given, cell, out=gates)
            zr.sigmoid_()
            n.addcmul_(r, c).tanh_()
            torch.lerp(n, before, z, out=state)
            following.copy_(shared)
            torch.bmm(after, heads, out=outputs)
        return self.outputs

    def backward(self) -> None:
        """The stack's ``gradient``, from ``outer``, that of what :meth:`forward` returned."""
        stack, width = self.stack, self.stack.width
        tanh_backward, sigmoid_backward = torch.ops.aten.tanh_backward, torch.ops.aten.sigmoid_backward
        heads = stack.parts["heads"][:, ROWS:].transpose(1, 2)
        back = stack.parts["cell"][:, stack.inputs :, width:].transpose(1, 2)
        of_cell = self.outer.new_zeros(stack.parts["cell"].shape)
        of_heads = self.outer.new_zeros(stack.parts["heads"].transpose(1, 2).shape)
        later: Tensor | None = None
        for (n, z, r, c, zr, before), ends, shared, scratch, chunks in reversed(self._backwards):
            total, passed, before_turn, block, kept, of_n, of_zr, of_c, of_z, of_r, of_gates = scratch
            torch.bmm(ends, heads, out=total)
            if later is not None:
                (total if shared == len(total[0]) else total[:, :shared]).add_(later)
            torch.mul(total, z, out=passed)
            torch.sub(before, n, out=of_z).mul_(total)
            tanh_backward.grad_input(total.sub_(passed), n, grad_input=of_n)
            torch.mul(of_n, c, out=of_r)
            torch.mul(of_n, r, out=of_c)
            sigmoid_backward.grad_input(of_gates, zr, grad_input=of_zr)
            later = torch.baddbmm(passed, kept, back, out=before_turn)
            for given, part, ended, after in chunks:
                of_cell.baddbmm_(given, block[:, part])
                of_heads.baddbmm_(ended, after)
        torch.mul(of_cell, stack.mask, out=stack.gradients["cell"])
        stack.gradients["bias"][..., width:] = of_cell[:, stack.one : stack.one + 1, width:]
        stack.gradients["heads"].copy_(of_heads.transpose(1, 2))
