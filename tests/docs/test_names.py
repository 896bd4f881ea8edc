"""What the documentation names exists: modules and functions, files, options, targets of make, messages, links."""

import inspect
import pydoc
import re
from importlib import import_module

import pages
import pytest
import typer

from latentpde.cli.program import app

PAGES = sorted(
    path for path in (*pages.ROOT.glob("*.md"), *pages.ROOT.glob("docs/*.md")) if path.name != "CHANGELOG.md"
)
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)


def prose(page):
    """A page without its blocks."""
    return re.sub(r"(?ms)^ *```.*?^ *``` *$", "", page.read_text())


def spans(page):
    """What stands in backticks."""
    return re.findall(r"`([^`\n]+)`", prose(page))


@every_page
def test_python_names_resolve(page):
    text = page.read_text()
    for name in sorted(set(re.findall(r"(?<![\w./\"-])latentpde(?:\.[A-Za-z_]\w*)+(?![\w/])", text))):
        if name in ("latentpde.families", "latentpde.methods", "latentpde.benchmarks"):  # groups of entry points
            continue
        assert resolves(name), f"{page.name} names {name}"


def resolves(name):
    parts = name.split(".")
    for number in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:number]))
        except ModuleNotFoundError:
            continue
        for part in parts[number:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def test_every_name_of_the_reference_has_an_example():
    """Functions and classes that can be used as they are; what others derive from is shown by those."""
    reference, names = (pages.ROOT / "docs" / "api.md").read_text(), []
    for kind, name, options in re.findall(r"\.\. auto(\w+):: (\S+)\n((?:   :.*\n)*)", reference):
        members = re.search(":members: (.+)", options)
        if kind != "module":
            names.append(name)
        elif members:
            names += [f"{name}.{member.strip()}" for member in members[1].split(",")]
    assert len(names) > 80
    things = {name: pydoc.locate(name) for name in names}
    lacking = [n for n, thing in things.items() if not inspect.isabstract(thing) and ">>>" not in inspect.getdoc(thing)]
    assert not lacking


@every_page
def test_files_exist(page):
    for span in spans(page):
        if re.fullmatch(r"(latentpde|tools|tests|docs|examples|results)/[a-z0-9_./-]+\.(py|md|json|toml)", span):
            assert (pages.ROOT / span).exists() or span == "latentpde/pde/hyperdiffusion.py", (
                f"{page.name} names {span}"
            )


@every_page
def test_options_are_those_of_the_program(page):
    commands = typer.main.get_command(app).commands.values()
    known = {option for command in commands for parameter in command.params for option in parameter.opts}
    known |= {option for command in commands for parameter in command.params for option in parameter.secondary_opts}
    known |= {"--help", "--version", "--debug"}
    for span in spans(page):
        if span.startswith(("--", "latentpde ")):
            unknown = set(re.findall(r"(?<!\S)--[a-z-]+", span)) - known
            assert not unknown, f"{page.name} names {', '.join(unknown)}"


@every_page
def test_targets_of_make_exist(page):
    targets = set(re.findall(r"(?m)^([a-z-]+):", (pages.ROOT / "Makefile").read_text()))
    named = re.findall(
        r"\bmake ([a-z-]+)", "\n".join([*spans(page), *(b.text for b in pages.blocks(page.read_text()))])
    )
    assert set(named) <= targets


@every_page
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose(page)):
        if "://" in target or not re.search(r"[./]", target):  # elsewhere, or a label that Sphinx checks
            continue
        if target.startswith("auto_examples/"):  # made from examples/ when the documentation is built
            continue
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_messages_in_troubleshooting_are_those_of_the_program():
    sources = [path.read_text() for path in (pages.ROOT / "latentpde").rglob("*.py")]
    source = re.sub(r"\"\s*f?\"", "", "\n".join(sources))  # strings over several lines are joined
    table = (pages.ROOT / "docs" / "troubleshooting.md").read_text().partition("| message |")[2]
    messages = re.findall(r"(?m)^\| `([^`]+)` \|", table)
    assert len(messages) > 5
    for message in messages:
        for fragment in message.split("..."):
            assert fragment.strip() in source, message
