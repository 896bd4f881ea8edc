"""Write mathematics as MathML, which browsers draw by themselves: no script, no font, nothing from the network.

Docutils does the conversion. Its habits are mended here. It reads ``\\frac12`` as a fraction of twelve; it knows
``\\bigl`` and ``\\ldots`` but not ``\\big`` and ``\\dots``; it stretches the bars of a norm with an exponent; and it
sets the index of an accented letter, as in ``\\hat u_0``, below the letter instead of beside it.
"""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

_SHORT_FRACTION = re.compile(r"\\([dt]?frac)\s*(\d)\s*([\da-zA-Z])(?![a-zA-Z])")
_BIG_DELIMITER = re.compile(
    r"\\([bB]igg?)\s*(?=[(\[)\]/|]|\\[{}]|\\[lr](?:ceil|floor))(?=(\)|\]|\\}|\\r(?:ceil|floor))?)"
)
_BAR = re.compile(r"<mo[^>]*>([|\u2223\u2225\u2016])</mo>")
_ACCENT_WITH_INDEX = re.compile(
    r"<munderover>(<mi>[^<]*</mi>)((?:(?!<munderover>).)*?)(<mo stretchy=\"false\">[^<]</mo>)</munderover>"
)


def to_mathml(latex: str, *, block: bool) -> str:
    latex = _SHORT_FRACTION.sub(r"\\\1{\2}{\3}", latex).replace(r"\dots", r"\ldots")
    latex = _BIG_DELIMITER.sub(lambda found: rf"\{found[1]}{'r' if found[2] else 'l'}", latex)
    markup = "".join(line.strip() for line in tex2mathml(latex, as_block=block).splitlines())
    markup = _BAR.sub(r'<mo stretchy="false">\1</mo>', markup)
    return _ACCENT_WITH_INDEX.sub(r'<msub><mover accent="true">\1\3</mover>\2</msub>', markup)


def _convert(node: nodes.Node, text: str, *, block: bool) -> str:
    try:
        return to_mathml(text, block=block)
    except MathError as error:
        logger.warning("cannot write %r as MathML: %s", text, error, location=node)
        return ""


def _visit_inline(self, node: nodes.math) -> None:
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    self.body.append(_convert(node, node.astext(), block=False) + "</span>")
    raise nodes.SkipNode


def _visit_block(self, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})</span>')
    text = node.astext()
    if "&" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    self.body.append(_convert(node, text, block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", inline_renderers=(_visit_inline, None), block_renderers=(_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
