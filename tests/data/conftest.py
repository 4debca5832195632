"""Nothing in this folder is a test: without this line, collecting doctests would run the lab."""

collect_ignore = ["seed_lab_ru.py"]
