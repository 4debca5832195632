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

Cell = tuple[Tensor, Tensor, Tensor, Tensor]
"""Of one turn: the state before, the gates r and z, the candidate n, and what r multiplies in it."""


def padded(size: int, to: int = ROWS) -> int:
    return -(-size // to) * to


class Stack:
    """The weights of equally large networks, with the operations of a turn.

    ``weights`` is one matrix with a row for each network, ``gradient`` its gradient, and everything else here is a view
    of one of them or can be made anew from it. The gates are ordered (n, r, z) on the side of the input and (r, z, n)
    on the side of the state, so that the two gradients overlap in one block (n, r, z, n).
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
        self._w, self._g = (
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
        for k in range(3):
            rows = slice(k * size, (k + 1) * size)
            columns = slice(k * self.width, k * self.width + size)
            turned = slice((k + 1) % 3 * self.width, (k + 1) % 3 * self.width + size)
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
            for theirs, ours in self._parts(model, self._w, row):
                ours.copy_(theirs)

    @torch.no_grad()
    def write(self, models: Sequence[RecurrentActorCritic]) -> None:
        """Give the networks these weights."""
        for row, model in enumerate(models):
            for theirs, ours in self._parts(model, self._w, row):
                theirs.copy_(ours)

    @torch.no_grad()
    def write_gradient(self, models: Sequence[RecurrentActorCritic]) -> None:
        """Give the networks this gradient."""
        for row, model in enumerate(models):
            parameters = list(model.parameters())
            values = [parameter.clone() for parameter in parameters]
            for theirs, ours in self._parts(model, self._g, row):
                theirs.copy_(ours)
            for parameter, value in zip(parameters, values, strict=True):
                parameter.grad = parameter.clone()
                parameter.copy_(value)

    def initial_state(self, rows: int) -> Tensor:
        return self.weights.new_zeros(self.count, rows, self.width)

    def turn(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Cell]:
        """One turn of the GRU; ``inputs`` has shape ``(networks, rows, inputs)``."""
        width = self.width
        seen = torch.bmm(inputs, self._w["input"])
        kept = torch.baddbmm(self._w["state_bias"], state, self._w["state"])
        gates = (seen[..., width:] + kept[..., : 2 * width]).sigmoid_()
        carried = kept[..., 2 * width :]
        candidate = torch.addcmul(seen[..., :width], gates[..., :width], carried).tanh_()
        return torch.lerp(candidate, state, gates[..., width:]), (state, gates, candidate, carried)

    def heads(self, states: Tensor) -> Tensor:
        """Logits, the value in the column after them, and 0 in the rest; ``states`` are ``(networks, rows, width)``."""
        return torch.baddbmm(self._w["heads_bias"], states, self._w["heads"])

    def forward(self, inputs: Tensor, rows: Sequence[int]) -> tuple[Tensor, list[Cell]]:
        """Whole episodes from their beginning; of turn t the first ``rows[t]`` rows, which never grow.

        ``inputs`` has shape ``(networks, turns, rows, inputs)``, and so have the states that come back, of all turns
        and one more: entry t + 1 is the state after turn t, and 0 where nothing was computed.
        """
        count, turns, height, _ = inputs.shape
        states = self.weights.new_zeros(count, turns + 1, height, self.width)
        state, cells = states[:, 0], []
        for t, running in enumerate(rows):
            state, cell = self.turn(inputs[:, t, :running], state[:, :running])
            states[:, t + 1, :running] = state
            cells.append(cell)
        return states, cells

    def backward(self, inputs: Tensor, states: Tensor, cells: Sequence[Cell], outer: Tensor) -> None:
        """The ``gradient``, from ``outer``, that of the outputs of :meth:`heads`, ``(networks, turns, rows, …)``."""
        width = self.width
        count, turns, height, _ = outer.shape
        inner = torch.bmm(outer.flatten(1, 2), self._w["heads"].transpose(1, 2)).view(count, turns, height, width)
        back = self._w["state"].transpose(1, 2)
        blocks = self.weights.new_zeros(count, turns, height, 4 * width)  # of n; of r, z; of what r multiplies in n
        later: Tensor | None = None
        for t in range(len(cells) - 1, -1, -1):
            before, gates, candidate, carried = cells[t]
            running = before.shape[1]
            total = inner[:, t, :running]
            if later is not None:
                total[:, : later.shape[1]] += later
            block = blocks[:, t, :running]
            passed = total * gates[..., width:]
            of_candidate = torch.ops.aten.tanh_backward(total - passed, candidate)
            of_gates = torch.empty_like(gates)
            torch.mul(of_candidate, carried, out=of_gates[..., :width])
            torch.mul(total, before - candidate, out=of_gates[..., width:])
            block[..., :width] = of_candidate
            block[..., width : 3 * width] = torch.ops.aten.sigmoid_backward(of_gates, gates)
            torch.mul(of_candidate, gates[..., :width], out=block[..., 3 * width :])
            if t:
                later = torch.baddbmm(passed, block[..., width:], back)
        self.gradient.zero_()
        for start in range(0, turns, CHUNK):
            part = slice(start, start + CHUNK)
            given, block, ends = (x[:, part].flatten(1, 2) for x in (inputs, blocks, outer))
            old, new = (x[:, part].flatten(1, 2) for x in (states[:, :-1], states[:, 1:]))
            of_inputs = torch.bmm(given.transpose(1, 2), block)
            self._g["input"] += of_inputs[..., : 3 * width]
            self._g["state_bias"] += of_inputs[:, self.bias : self.bias + 1, width:]
            self._g["state"] += torch.bmm(old.transpose(1, 2), block[..., width:])
            self._g["heads"] += torch.bmm(new.transpose(1, 2), ends)
            self._g["heads_bias"] += torch.bmm(given.transpose(1, 2), ends)[:, self.bias : self.bias + 1]
