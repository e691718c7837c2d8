"""A preprocessor of mdBook: links of docs/ to files beside it become links to the repository, which the book lacks.

mdBook calls it as `book_links.py supports RENDERER`, then with [context, book] as JSON on standard input."""

import json
import posixpath
import re
import sys


def rewritten(chapter, repository):
    folder = posixpath.dirname(chapter["path"])

    def link(match):
        target = match[1]
        if re.match(r"[a-z]+:|#|/", target):
            return match[0]
        path = posixpath.normpath(posixpath.join("docs", folder, target))
        return match[0] if path.startswith("docs/") else f"]({repository}/blob/main/{path})"

    return re.sub(r"\]\(([^)\s]+)\)", link, chapter["content"])


def walk(items, repository):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            if chapter.get("path"):
                chapter["content"] = rewritten(chapter, repository)
            walk(chapter["sub_items"], repository)


if sys.argv[1:2] != ["supports"]:
    context, book = json.load(sys.stdin)
    repository = context["config"]["output"]["html"]["git-repository-url"]
    walk(book.get("items", book.get("sections", [])), repository)
    json.dump(book, sys.stdout)
