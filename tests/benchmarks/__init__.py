"""How long things take. Nothing here is part of the tests: timings decide nothing."""
