"""Wrong calls in Python are refused by our own errors, with the words of the command line, and leave nothing behind."""

import json
import subprocess
import sys
from pathlib import Path


def test_wrong_calls_raise_our_errors():
    script = Path(__file__).with_name("python_calls.py")
    done = subprocess.run([sys.executable, script], check=False, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    *found, left = json.loads(done.stdout)
    wrong = [f"{name} -> {what}" for name, what in found if not what.startswith(("UsageError: ", "DataError: "))]
    assert not wrong, "\n".join(wrong)
    assert len(found) > 200
    assert left == ["left", "[]"]
