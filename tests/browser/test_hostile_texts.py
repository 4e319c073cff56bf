"""Texts of models, tools and people run no script and load nothing, in Chromium."""

from urllib.parse import urlsplit

import pytest

from tests.browser.driver.chromium import listen, signed_in
from tests.browser.seed.hostile import EVIL, SHARE
from tests.browser.site import running_site

pytestmark = pytest.mark.browser

PAGES = [
    *("/", "/runs/", "/runs/?q=script", "/chat/", "/chat/hostile/900/"),
    *("/runs/901/", "/runs/901/?step=1", "/runs/901/?step=2", "/runs/901/?step=3"),
    *("/runs/901/?step=4", "/runs/902/", "/runs/902/?step=2", "/runs/903/"),
    *("/runs/901/again/", "/runs/901/share/", "/runs/902/resume/"),
    *("/runs/901/fork/1/", "/runs/compare/?a=901&b=902"),
    *("/approvals/", "/approvals/904/", "/agents/", "/prompts/", "/providers/"),
    *("/tools/", "/schedules/", "/webhooks/", "/playground/"),
    f"/shared/{SHARE}/",
    *("/admin/", "/admin/tools/tool/", "/admin/tools/auditentry/"),
    *("/admin/tools/credential/", "/admin/auth/user/", "/admin/auth/group/"),
]


def test_hostile_texts_do_nothing(browser):
    with running_site(seed="tests.browser.seed.hostile") as site:
        context = browser.new_context()
        asked, dialogs = [], []
        context.on("request", lambda one: asked.append((one.method, one.url)))
        page = signed_in(context, site.url, "admin", "admin")
        page.on("dialog", lambda dialog: (dialogs.append(dialog), dialog.dismiss()))
        heard = listen(page)
        posts = sum(method == "POST" for method, _url in asked)

        for path in PAGES:
            answer = page.goto(f"{site.url}{path}")
            assert answer.status == 200, path
            page.wait_for_timeout(150)
            assert page.evaluate("typeof pwned") == "undefined", path
            assert page.locator("script:not([src]), iframe, object, base").count() == 0
        exported = context.request.get(f"{site.url}/runs/901/export/html/").text()
        file = context.new_page()
        heard_of_file = listen(file)
        file.set_content(exported)
        file.wait_for_timeout(300)
        assert file.evaluate("typeof pwned") == "undefined"
        context.close()

    assert dialogs == []
    assert heard + heard_of_file == []
    assert {urlsplit(url).hostname for _method, url in asked} == {"127.0.0.1"}
    assert sum(method == "POST" for method, _url in asked) == posts
    assert EVIL in exported  # as text
