"""Every block of code and every command in the documentation runs, in the order of its page."""

import subprocess
import sys

import pages
import pytest

SLOW = ("docs/benchmarks.md", "docs/calibration.md", "docs/learned.md", "docs/troubleshooting.md")
PAGES = [path.relative_to(pages.ROOT).as_posix() for path in (*pages.ROOT.glob("*.md"), *pages.ROOT.glob("docs/*.md"))]


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow if page in SLOW else ()) for page in sorted(PAGES)]
)
def test_a_page_does_what_it_shows(page, tmp_path):
    done = subprocess.run(
        [sys.executable, pages.__file__, pages.ROOT / page], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]


BLOCKS = """
```python
print(1)
```

```text
1
```

- A list:

  <!-- not run: takes an hour -->
  ```sh
  false
  ```
"""


def test_blocks_are_found_with_their_language_line_and_reason():
    assert pages.blocks(BLOCKS) == [
        pages.Block("python", "print(1)\n", 2),
        pages.Block("text", "1\n", 6),
        pages.Block("sh", "false\n", 13, "takes an hour"),
    ]


@pytest.mark.parametrize(
    ("block", "fragment"),
    [
        ("```python\nraise ValueError('so')\n```", "so"),
        ("```sh\nfalse\ntrue\n```", "exit code 1"),
        ("```sh\nlatentpde --version\n```\n\n```text\nerror: none\n```", "exit code 0"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```", "the page says"),
        ("```\nanything\n```", "needs a language"),
        ("```toml\n= 1\n```", "Invalid"),
    ],
    ids=["python", "shell", "no error", "output", "untagged", "toml"],
)
def test_a_page_that_is_wrong_fails(block, fragment, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{block}\n")
    done = subprocess.run(
        [sys.executable, pages.__file__, page], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode
    assert fragment in done.stderr
