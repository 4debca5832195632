"""The two languages of the book, and the words that its site draws itself, in both."""

from __future__ import annotations

OWN_NAMES = {"en": "English", "ru": "Русский"}
"""The languages, each by its own name."""

WORDS = {
    "ru": {
        "title": "Обучение с подкреплением для агентов, действующих через инструменты",
        "author": "Авторы keydoor",
        "search": "Поиск по книге",
        "captions": {
            "Front": "Начало",
            "I. The agent's world": "I. Мир агента",
            "II. The arithmetic of turns": "II. Арифметика ходов",
            "IV. Practice": "IV. Практика",
            "Lab": "Практикум",
            "Back": "Справочник",
        },
        "colophon": "Текст — CC BY 4.0, код — MIT. Версия",
        "switch": "Эта страница по-русски",
        "proof": "Доказательство.",
        "menu": "Показать или скрыть оглавление книги",
        "contents": "Показать или скрыть содержание страницы",
        "book": "Оглавление книги",
        "home": "К началу книги",
        "course": "Весь курс одним архивом (zip)",
        "editions": {"pdf": "Вся книга, PDF", "epub": "Вся книга, EPUB", "tooltip": "Скачать книгу одним файлом"},
        "slides": {
            "name": "слайды",
            "open": "Слайды этой главы",
            "back": "К тексту главы",
            "help": "Стрелки и пробел листают слайды, Esc показывает все, F — во весь экран, ? — список клавиш.",
        },
        "figures": {
            "open": "Рисунок отдельно",
            "credit": "{number}. {caption} — {page} // {book} / {author}. Версия {version}. CC BY 4.0.",
        },
        "colab": "Открыть блокнот в Colab",
        "install": "Устанавливает пакет книги там, где его нет, например в Colab.",
        "citing": {"title": "Как сослаться на эту страницу", "version": "Версия", "url": "URL: "},
        "permalinks": {"result": "Ссылка на этот результат", "exercise": "Ссылка на это упражнение"},
        "talk": {
            "group": "Исходный текст и обсуждение",
            "problem": "Сообщить об ошибке на этой странице",
            "edit": "Предложить правку",
            "report": "Ошибка на странице «{}»",
            "body": "Файл: {file}\nВерсия книги: {version}\nАдрес: {url}\n\nЧто написано:\n\nЧто верно и почему:\n",
        },
        "versions": "другие версии",
        "feed": "Изменения и замеченные ошибки",
        "figure": "Рисунок",
        "finder": {  # Sphinx has no words for the first and forgets the space at the end of the second
            "Search finished, found ${resultCount} page(s) matching the search query.": (
                "Поиск завершён, найдено страниц: ${resultCount}."
            ),
            ", in ": ", в ",
        },
    },
    "en": {
        "title": "Reinforcement Learning for Agents That Act Through Tools",
        "author": "The keydoor authors",
        "search": "Search the book",
        "captions": {},
        "colophon": "Text CC BY 4.0, code MIT. Version",
        "switch": "This page in English",
        "proof": "Proof.",
        "menu": "Show or hide the contents of the book",
        "contents": "Show or hide the contents of this page",
        "book": "Contents of the book",
        "home": "Start of the book",
        "course": "The whole course as one archive (zip)",
        "editions": {"pdf": "Whole book, PDF", "epub": "Whole book, EPUB", "tooltip": "Download the book as one file"},
        "slides": {
            "name": "slides",
            "open": "Slides of this chapter",
            "back": "To the text of the chapter",
            "help": "Arrows and space turn the slides, Esc shows them all, F is full screen, ? lists the other keys.",
        },
        "figures": {
            "open": "Take this figure",
            "credit": "{number}. {caption} From: {page}. In: {book}, {author}, version {version}. CC BY 4.0.",
        },
        "colab": "Open the notebook in Colab",
        "install": "Installs the package of the book where it is missing, for example in Colab.",
        "citing": {"title": "Cite this page", "version": "Version", "url": ""},
        "permalinks": {"result": "Link to this result", "exercise": "Link to this exercise"},
        "talk": {
            "group": "Source and discussion",
            "problem": "Report a problem on this page",
            "edit": "Suggest an edit",
            "report": "Problem on page {}",
            "body": "File: {file}\nVersion: {version}\nAddress: {url}\n\nWhat is written:\n\nWhat is right, and why:\n",
        },
        "versions": "other versions",
        "feed": "Changes and errata",
        "figure": "Figure",
        "finder": {},
    },
}
