"""Tools of other products that the built-in tools replace."""

from runs.services.importers.conversion import ConvertedTool

CALCULATOR = "tools.builtin.calculator:calculator"
CLOCK = "tools.builtin.clock:clock"
WEATHER = "tools.builtin.weather:weather"
WEB_PAGE = "tools.builtin.web_page:web_page"
WEB_SEARCH = "tools.builtin.web_search:web_search"
WIKIPEDIA = "tools.builtin.wikipedia:wikipedia"

WORDS = (
    (
        CALCULATOR,
        (
            "calculator",
            "calculatorcomponent",
            "toolcalculator",
            "evalexpression",
            "maths",
        ),
    ),
    (CLOCK, ("currentdatetime", "currenttime", "currentdate", "datetimetool")),
    (WEATHER, ("weather", "weatherquery", "openweathermap", "openmeteo")),
    (
        WEB_PAGE,
        (
            "webscraper",
            "webbrowser",
            "url",
            "urlcomponent",
            "fetchwebpage",
            "webpage",
            "jinareader",
        ),
    ),
    (
        WIKIPEDIA,
        (
            "wikipedia",
            "wikipediasearch",
            "toolwikipedia",
            "wikipediacomponent",
            "wikipediaapi",
        ),
    ),
    (
        WEB_SEARCH,
        (
            "bingsearch",
            "bravesearch",
            "bravesearchapi",
            "duckduckgo",
            "ddgosearch",
            "duckduckgosearch",
            "exasearch",
            "googlecustomsearch",
            "googlesearch",
            "googlesearchapi",
            "googleserperapi",
            "searchapi",
            "searchapicomponent",
            "searchcomponent",
            "searxng",
            "searxngsearch",
            "serpapi",
            "serpapicomponent",
            "serper",
            "tavily",
            "tavilysearch",
            "tavilyapi",
            "tavilysearchapi",
            "tavilysearchcomponent",
            "toolserpapi",
            "toolsearxng",
            "websearch",
            "websearchtool",
            "websearchpreview",
            "websearchnosapi",
        ),
    ),
)
BY_WORD = {word: function for function, words in WORDS for word in words}


def find_known_tool(*names: str) -> ConvertedTool | None:
    """Return the built-in tool for one of the names of a foreign tool, or None."""
    for name in names:
        word = "".join(c for c in name.rpartition(".")[2].lower() if c.isalnum())
        if function := BY_WORD.get(word):
            return ConvertedTool(
                name=function.rpartition(":")[2],
                kind="function",
                config={"function": function},
            )
    return None
