// The editor of a live cell. tools/bundle_live.py makes ../vendor/codemirror/editor.js of this and of CodeMirror.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

// Tab moves on, as everywhere in the page: a keyboard can leave the editor. Colours are in live.css, for both modes.
export function createEditor(parent, text, { label, run, leave }) {
  const keys = [
    { key: "Shift-Enter", run: () => (run(), true) },
    { key: "Ctrl-Enter", run: () => (run(), true) },
    { key: "Escape", run: () => (leave(), true) },
  ];
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(keymap.of(keys)),
        keymap.of([...defaultKeymap, ...historyKeymap]),
        lineNumbers(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        indentUnit.of("    "),
        pythonLanguage,
        syntaxHighlighting(classHighlighter),
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
      ],
    }),
  });
  return { text: () => view.state.doc.toString(), focus: () => view.focus(), destroy: () => view.destroy() };
}
