r"""Many prompts with many answers in one pass: a tree of tokens, each of which is computed once.

Fifteen prompts of a hundred tokens, with six answers each, share almost all of their tokens. Put together they are a
tree: a token hangs under the token before it, and two sequences part where they differ. A transformer computes the
whole tree in one pass if each token attends to its ancestors and has its depth as its position; what it finds for a
token is then what it would have found in the sequence alone.

.. math:: \log P(x\mid h) = \sum_{i=1}^{n} \log P(x_i\mid h, x_{<i})

is a sum over the edges of the answer. Layers that are not trained are computed once and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from keydoor._checks import refuse, whole


class TokenTree:
    """Sequences of a prompt and an answer, merged where they agree.

    Args:
        sequences: pairs of lists of token ids, integers at least 0: a prompt and an answer, neither of them empty.

    Raises:
        ValueError: no sequence, or an empty prompt or answer.

    Example:
        >>> tree = TokenTree([([1, 2], [3, 9]), ([1, 2], [4, 9]), ([1, 5], [3, 9])])
        >>> tree.ids.tolist(), tree.depth.tolist()
        ([1, 2, 3, 4, 5, 3], [0, 1, 2, 2, 1, 2])
    """

    def __init__(self, sequences: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        if not sequences:
            refuse("sequences", sequences, "at least one pair of a prompt and an answer")
        nodes: dict[tuple[int, int], int] = {}
        edges: dict[tuple[int, int], int] = {}
        parents: list[int] = []
        rows: list[int] = []
        columns: list[int] = []
        for number, (prompt, answer) in enumerate(sequences):
            if not len(prompt) or not len(answer):
                refuse(f"sequences[{number}]", (prompt, answer), "a prompt and an answer of at least one token each")
            at = -1
            whole_sequence = [*prompt, *answer]
            for place, token in enumerate(whole_sequence):
                if place >= len(prompt):
                    columns.append(edges.setdefault((at, token), len(edges)))
                    rows.append(number)
                if place + 1 == len(whole_sequence):
                    break  # nothing is predicted after the last token, so that it is no input
                before, at = at, nodes.setdefault((at, token), len(nodes))
                if at == len(parents):
                    parents.append(before)
        self.ids = torch.tensor([token for _, token in nodes])
        """The token of each node, of shape (tokens,); a node stands after the one it hangs under."""
        depth: list[int] = []
        self.mask = torch.zeros(len(nodes), len(nodes), dtype=torch.bool)
        """Which nodes a node attends to, itself and its ancestors, of shape (tokens, tokens)."""
        for node, parent in enumerate(parents):  # a parent stands before its children
            depth.append(depth[parent] + 1 if parent >= 0 else 0)
            if parent >= 0:
                self.mask[node] = self.mask[parent]
            self.mask[node, node] = True
        self.depth = torch.tensor(depth)
        """The position of each node, of shape (tokens,)."""
        sources = sorted({node for node, _ in edges})
        place_of = {node: place for place, node in enumerate(sources)}
        self._sources = torch.tensor(sources)
        self._edge_source = torch.tensor([place_of[node] for node, _ in edges])
        self._edge_token = torch.tensor([token for _, token in edges])
        self._edge_sequence = torch.tensor(rows)
        self._sequence_edge = torch.tensor(columns)
        self._count = len(sequences)

    def trunk(self, model: Any, layers: int) -> Tensor:
        """What the embedding and the first layers make of the tree, without a gradient.

        Args:
            model: a causal language model of the Llama or Qwen family.
            layers: how many layers, at least 0, at most all.

        Returns:
            Hidden states of shape (1, tokens, width).

        Raises:
            ValueError: more layers than there are.
        """
        if whole(layers, "layers", least=0) > len(model.model.layers):
            refuse("layers", layers, f"at most {len(model.model.layers)}, all that the model has")
        with torch.no_grad():
            hidden = model.model.embed_tokens(self.ids.to(model.device)[None])
            return self._through(model, hidden, 0, layers)

    def logprobs(self, model: Any, trunk: Tensor | None = None, layers: int = 0) -> Tensor:
        """The log-probability of each answer after its prompt, with a gradient if the caller asks for one.

        Args:
            model: the same model.
            trunk: what :meth:`trunk` returned for ``layers``, of shape (1, tokens, width); ``None`` computes it.
            layers: how many layers are done in it, at least 0.

        Returns:
            A tensor of shape (sequences,).

        Raises:
            ValueError: as :meth:`trunk`.
        """
        hidden = self.trunk(model, layers) if trunk is None else trunk
        hidden = self._through(model, hidden, layers, len(model.model.layers))
        hidden = model.model.norm(hidden[0, self._sources.to(hidden.device)])
        found = torch.log_softmax(model.lm_head(hidden).float(), dim=-1)
        device = found.device
        each = found[self._edge_source.to(device), self._edge_token.to(device)]
        total = torch.zeros(self._count, device=device)
        return total.index_add(0, self._edge_sequence.to(device), each[self._sequence_edge.to(device)])

    def _through(self, model: Any, hidden: Tensor, first: int, last: int) -> Tensor:
        position = self.depth.to(hidden.device)[None]
        rotation = model.model.rotary_emb(hidden, position_ids=position)
        mask = self.mask.to(hidden.device)[None, None]
        for layer in model.model.layers[first:last]:
            hidden = layer(hidden, attention_mask=mask, position_ids=position, position_embeddings=rotation)
        return hidden
