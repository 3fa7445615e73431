"""A local Hugging Face Hub over real HTTP: the requests of its client and of `datasets`, and faults on demand.

    with HubDouble() as hub:
        hub.add("someone/data", {"data/a.parquet": data}, gated=True)
        os.environ["HF_ENDPOINT"] = hub.url

Repositories, commits, branches and tags live in memory. `hub.requests` lists the requests; `hub.fail(...)` makes the
next requests that match end in a status, or in a connection that breaks off.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_double"  # is let into everything; any other token is somebody without access to what is gated
_REPO = r"/(?P<kind>datasets|models|spaces)/(?P<id>[^/]+/[^/]+)"
_DATE = "2026-01-01T00:00:00.000Z"
CUT = 0  # status of a fault: the request is executed, and the connection ends in the middle of the response
GONE = -1  # status of a fault: the connection ends, and the request is not executed


@dataclass
class Repo:
    gated: bool = False
    private: bool = False
    refs: dict[str, str] = field(default_factory=dict)  # branch or tag -> commit
    tags: set[str] = field(default_factory=set)
    commits: dict[str, dict[str, str]] = field(default_factory=dict)  # commit -> path -> blob
    log: list[tuple[str, str]] = field(default_factory=list)  # (commit, title), newest first
    requests: dict[int, list[str]] = field(default_factory=dict)  # pull request -> [title, "open" or "closed"]

    def commit(self, branch: str, files: Mapping[str, str], title: str) -> str:
        """Commit `files` to the branch. The commit's id depends only on parent, files and title."""
        parent = self.refs.get(branch, "")
        sha = hashlib.sha1(json.dumps([parent, sorted(files.items()), title]).encode()).hexdigest()
        self.commits[sha], self.refs[branch] = dict(files), sha
        self.log.insert(0, (sha, title))
        return sha

    def revision(self, name: str) -> str | None:
        return self.refs.get(name) or (name if name in self.commits else None)


@dataclass
class Fault:
    method: str
    path: re.Pattern[str]
    status: int
    times: int
    headers: Mapping[str, str]


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with the default of 5, a client whose connection is dropped tries again after 1 s


class HubDouble:
    """The server and its repositories. A context manager."""

    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.blobs: dict[str, bytes] = {}
        self.lfs: set[str] = set()
        self.requests: list[str] = []
        self.faults: list[Fault] = []
        self.refusal = "Invalid credentials"  # what is said to somebody who may not write
        self.lock = threading.RLock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> HubDouble:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(
        self, id: str, files: Mapping[str, bytes], gated: bool = False, private: bool = False, kind: str = "datasets"
    ) -> str:
        """A repository with one commit of `files`. Returns the commit."""
        repo = self.repos.setdefault((kind, id), Repo(gated, private))
        return repo.commit("main", {path: self.store(data, path) for path, data in files.items()}, "initial commit")

    def files(self, id: str, revision: str = "main", kind: str = "datasets") -> dict[str, bytes]:
        """Files of a revision, by path."""
        repo = self.repos[kind, id]
        return {path: self.blobs[blob] for path, blob in repo.commits[repo.revision(revision) or ""].items()}

    def store(self, data: bytes, path: str) -> str:
        name = hashlib.sha256(data).hexdigest() if _is_lfs(path, data) else _git_id(data)
        self.blobs[name] = data
        if _is_lfs(path, data):
            self.lfs.add(name)
        return name

    def fail(
        self, status: int, path: str = "", method: str = "", times: int = 1, headers: Mapping[str, str] | None = None
    ) -> None:
        """Make the next `times` requests to a matching path fail with `status`, or with `CUT` or `GONE`."""
        self.faults.append(Fault(method, re.compile(path), status, times, headers or {}))

    def fault(self, method: str, path: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.times and fault.method in ("", method) and fault.path.search(path):
                    fault.times -= 1
                    return fault
        return None


def _is_lfs(path: str, data: bytes) -> bool:
    return b"\0" in data[:512] or path.endswith(".parquet")


def _git_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class _Error(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass
class _Request:
    hub: HubDouble
    method: str
    query: dict[str, str]
    headers: Any
    body: bytes
    groups: dict[str, str]

    def json(self) -> Any:
        return json.loads(self.body or b"{}")

    def repo(self, kind: str = "", id: str = "") -> Repo:
        key = kind or self.groups["kind"], id or self.groups["id"]
        repo = self.hub.repos.get(key)
        known = self.headers.get("authorization", "") == f"Bearer {TOKEN}"
        if repo is None or (repo.private and not known):
            raise _Error(404 if known else 401, "RepoNotFound", "Repository not found")
        return repo

    def gated(self) -> Repo:
        """The repository of a request for files."""
        repo = self.repo()
        if repo.gated and self.headers.get("authorization", "") != f"Bearer {TOKEN}":
            named = f"Access to dataset {self.groups['id']} is restricted"
            if self.headers.get("authorization"):
                raise _Error(403, "GatedRepo", f"{named} and you are not in the authorized list.")
            raise _Error(401, "GatedRepo", f"{named}. You must be authenticated to access it.")
        return repo

    def commit(self, name: str = "rev") -> tuple[Repo, str]:
        repo = self.repo()
        sha = repo.revision(unquote(self.groups.get(name) or "main"))
        if sha is None:
            raise _Error(404, "RevisionNotFound", f"Invalid rev id: {self.groups.get(name)}")
        return repo, sha

    def entry(self, path: str, blob: str) -> dict[str, Any]:
        size = len(self.hub.blobs[blob])
        found: dict[str, Any] = {"type": "file", "oid": blob[:40], "size": size, "path": path}
        if blob in self.hub.lfs:
            found["lfs"] = {"oid": blob, "size": size, "pointerSize": 130}
        return found


Answer = tuple[int, dict[str, str], bytes]


def _answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return status, {"Content-Type": "application/json", **(headers or {})}, json.dumps(value).encode()


def _who(request: _Request) -> Answer:
    if request.headers.get("authorization") is None:
        raise _Error(401, "", "Invalid credentials")
    token = {"displayName": "double", "role": "write"}
    return _answer(
        {
            "type": "user",
            "id": "0",
            "name": "tester",
            "orgs": [],
            "auth": {"type": "access_token", "accessToken": token},
        }
    )


def _create(request: _Request) -> Answer:
    body = request.json()
    kind, id = body.get("type", "model") + "s", f"{body.get('organization') or 'tester'}/{body['name']}"
    if request.headers.get("authorization") != f"Bearer {TOKEN}":
        raise _Error(401, "", request.hub.refusal)
    with request.hub.lock:
        url = f"{request.hub.url}/{'' if kind == 'models' else kind + '/'}{id}"
        if (kind, id) in request.hub.repos:
            return _answer({"error": "You already created this repo", "url": url}, 409)
        repo = request.hub.repos[kind, id] = Repo(private=body.get("visibility") == "private")
        repo.commit("main", {}, "initial commit")
    return _answer({"url": url, "name": id, "id": "0"})


def _info(request: _Request) -> Answer:
    repo, sha = request.commit()
    siblings = [
        {"rfilename": path, "size": len(request.hub.blobs[blob]), "blobId": blob[:40]}
        for path, blob in sorted(repo.commits[sha].items())
    ]
    id = request.groups["id"]
    return _answer(
        {
            "_id": "0" * 24,
            "id": id,
            "author": id.split("/")[0],
            "sha": sha,
            "lastModified": _DATE,
            "createdAt": _DATE,
            "private": repo.private,
            "gated": "auto" if repo.gated else False,
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "siblings": siblings,
        }
    )


def _refs(request: _Request) -> Answer:
    repo = request.repo()

    def ref(name: str, kind: str) -> dict[str, str]:
        return {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": repo.refs[name]}

    branches = [ref(name, "heads") for name in repo.refs if name not in repo.tags and "/pr/" not in name]
    return _answer({"branches": branches, "converts": [], "tags": [ref(name, "tags") for name in sorted(repo.tags)]})


def _tag(request: _Request) -> Answer:
    repo, sha = request.commit()
    name = request.json()["tag"]
    if name in repo.refs:
        return _answer({"error": f"Tag reference exists already: {name}"}, 409)
    repo.refs[name] = sha
    repo.tags.add(name)
    return _answer({})


def _branch(request: _Request) -> Answer:
    repo, name = request.repo(), unquote(request.groups["rev"])
    if name in repo.refs:
        return _answer({"error": f"Reference already exists: {name}"}, 409)
    start = request.json().get("startingPoint", "main")
    repo.refs[name] = repo.revision(start) or repo.refs["main"]
    return _answer({})


def _commits(request: _Request) -> Answer:
    repo = request.repo()
    entries = [
        {"id": s, "title": t, "message": "", "date": _DATE, "authors": [{"user": "tester"}]} for s, t in repo.log
    ]
    return _answer(entries)


def _tree(request: _Request) -> Answer:
    repo, sha = request.commit()
    folder = unquote(request.groups.get("path") or "").strip("/")
    prefix = f"{folder}/" if folder else ""
    deep = request.query.get("recursive", "false").lower() in ("true", "1")
    found: dict[str, Any] = {}
    for path, blob in sorted(repo.commits[sha].items()):
        if path.startswith(prefix):
            parts = path.removeprefix(prefix).split("/")
            for end in range(1, len(parts) if deep else min(2, len(parts))):
                name = prefix + "/".join(parts[:end])
                found.setdefault(name, {"type": "directory", "oid": "0" * 40, "size": 0, "path": name})
            if deep or len(parts) == 1:
                found[path] = request.entry(path, blob)
    if folder and not found:
        raise _Error(404, "EntryNotFound", "not found")
    return _answer(list(found.values()))


def _paths(request: _Request) -> Answer:
    repo, sha = request.commit()
    if "json" in request.headers.get("content-type", ""):
        paths = request.json()["paths"]
    else:
        paths = parse_qs(request.body.decode()).get("paths", [])
    found, files = [], repo.commits[sha]
    for path in (path.strip("/") for path in paths):
        if path in files:
            found.append(request.entry(path, files[path]))
        elif any(name.startswith(f"{path}/") for name in files):
            found.append({"type": "directory", "oid": "0" * 40, "size": 0, "path": path})
    return _answer(found)


def _preupload(request: _Request) -> Answer:
    _, sha = request.commit()
    modes = []
    for file in request.json()["files"]:
        large = _is_lfs(file["path"], base64.b64decode(file["sample"]))
        modes.append({"path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False})
    return _answer({"files": modes, "commitOid": sha})


def _batch(request: _Request) -> Answer:
    objects = []
    for item in request.json()["objects"]:
        entry = {"oid": item["oid"], "size": item["size"]}
        if item["oid"] not in request.hub.blobs:
            upload = {"href": f"{request.hub.url}/_lfs/{item['oid']}", "header": {}}
            entry["actions"] = {"upload": upload, "verify": {"href": f"{request.hub.url}/_verify", "header": {}}}
        objects.append(entry)
    status, headers, body = _answer({"transfer": "basic", "objects": objects})
    return status, {**headers, "Content-Type": "application/vnd.git-lfs+json"}, body


def _upload(request: _Request) -> Answer:
    if hashlib.sha256(request.body).hexdigest() != request.groups["oid"]:
        raise _Error(400, "", "the bytes are not those of the hash")
    with request.hub.lock:
        request.hub.blobs[request.groups["oid"]] = request.body
        request.hub.lfs.add(request.groups["oid"])
    return _answer({})


def _verify(request: _Request) -> Answer:
    return _answer({}, 200 if request.json()["oid"] in request.hub.blobs else 404)


def _commit(request: _Request) -> Answer:
    with request.hub.lock:
        repo, sha = request.commit()
        branch = unquote(request.groups["rev"])
        files, title = dict(repo.commits[sha]), ""
        creates_pr = request.query.get("create_pr") in ("1", "true")
        for line in filter(None, request.body.decode().splitlines()):
            entry = json.loads(line)
            value = entry["value"]
            match entry["key"]:
                case "header":
                    title = value["summary"]
                    if creates_pr:  # it starts from the commit that it names, wherever the branch is now
                        files = dict(repo.commits[value.get("parentCommit") or sha])
                    elif value.get("parentCommit") not in (None, sha):
                        raise _Error(412, "", "A commit has happened since. Please refresh and try again.")
                case "file":
                    files[value["path"]] = request.hub.store(base64.b64decode(value["content"]), value["path"])
                case "lfsFile":
                    if value["oid"] not in request.hub.blobs:
                        raise _Error(400, "", f"LFS object missing {value['oid']}")
                    files[value["path"]] = value["oid"]
                case "deletedFile":
                    files.pop(value["path"], None)
                case "deletedFolder":
                    files = {p: b for p, b in files.items() if not p.startswith(value["path"].rstrip("/") + "/")}
        if creates_pr:
            number = len(repo.requests) + 1
            branch, repo.requests[number] = f"refs/pr/{number}", [title, "open"]
        sha = repo.commit(branch, files, title)
    kind, id = request.groups["kind"], request.groups["id"]
    home = f"{request.hub.url}/{'' if kind == 'models' else kind + '/'}{id}"
    answer = {"success": True, "commitOid": sha, "commitUrl": f"{home}/commit/{sha}", "hookOutput": ""}
    if branch.startswith("refs/pr/"):
        answer["pullRequestUrl"] = f"{home}/discussions/{branch.rpartition('/')[2]}"
    return _answer(answer)


def _discussions(request: _Request) -> Answer:
    found = [
        {"num": number, "title": title, "status": status, "isPullRequest": True, "createdAt": _DATE,
         "author": {"name": "tester"}, "repo": {"name": request.groups["id"], "type": "dataset"}}
        for number, (title, status) in request.repo().requests.items() if status == request.query["status"]
    ]  # fmt: skip
    return _answer({"discussions": found, "count": len(found), "start": 0})


def _status(request: _Request) -> Answer:
    status = request.json()["status"]
    request.repo().requests[int(request.groups["number"])][1] = status
    event = {"id": "0", "type": "status-change", "createdAt": _DATE, "author": {"name": "tester"}}
    return _answer({"newStatus": {**event, "data": {"status": status}}})


def _resolve(request: _Request) -> Answer:
    repo = request.gated()
    _, sha = request.commit()
    blob = repo.commits[sha].get(unquote(request.groups["path"]))
    if blob is None:
        raise _Error(404, "EntryNotFound", "Entry not found")
    data = request.hub.blobs[blob]
    headers = {
        "X-Repo-Commit": sha,
        "ETag": f'"{blob}"',
        "X-Linked-Etag": f'"{blob}"',
        "X-Linked-Size": str(len(data)),
        "Accept-Ranges": "bytes",
    }
    span = re.match(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
    if span is None:
        return 200, headers, data
    start = int(span[1]) if span[1] else max(0, len(data) - int(span[2]))
    end = min(int(span[2]) + 1 if span[1] and span[2] else len(data), len(data))
    return 206, {**headers, "Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}, data[start:end]


_ROUTES: tuple[tuple[str, str, Callable[[_Request], Answer]], ...] = (
    ("GET", r"/api/whoami-v2", _who),
    ("POST", r"/api/repos/create", _create),
    ("POST", r"/api/validate-yaml", lambda _: _answer({"errors": [], "warnings": []})),
    ("GET", rf"/api{_REPO}", _info),
    ("GET", rf"/api{_REPO}/revision/(?P<rev>.+)", _info),
    ("GET", rf"/api{_REPO}/refs", _refs),
    ("POST", rf"/api{_REPO}/tag/(?P<rev>.+)", _tag),
    ("POST", rf"/api{_REPO}/branch/(?P<rev>.+)", _branch),
    ("GET", rf"/api{_REPO}/discussions", _discussions),
    ("POST", rf"/api{_REPO}/discussions/(?P<number>\d+)/status", _status),
    ("GET", rf"/api{_REPO}/commits/(?P<rev>.+)", _commits),
    ("GET", rf"/api{_REPO}/tree/(?P<rev>[^/]+)(?:/(?P<path>.*))?", _tree),
    ("POST", rf"/api{_REPO}/paths-info/(?P<rev>.+)", _paths),
    ("POST", rf"/api{_REPO}/preupload/(?P<rev>.+)", _preupload),
    ("POST", rf"/api{_REPO}/commit/(?P<rev>.+)", _commit),
    ("POST", r"/(?:datasets/|spaces/)?[^/]+/[^/]+\.git/info/lfs/objects/batch", _batch),
    ("PUT", r"/_lfs/(?P<oid>\w+)", _upload),
    ("POST", r"/_verify", _verify),
    ("GET", rf"{_REPO}/resolve/(?P<rev>[^/]+)/(?P<path>.+)", _resolve),
    ("GET", r"/(?P<id>[^/]+/[^/]+)/resolve/(?P<rev>[^/]+)/(?P<path>.+)", _resolve),
)


def _handler(hub: HubDouble) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else the body waits 40 ms for the acknowledgement of the headers

        def log_message(self, *_: object) -> None: ...

        def _serve(self) -> None:
            url = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            hub.requests.append(f"{self.command} {url.path}")
            fault = hub.fault(self.command, url.path)
            if fault is not None and fault.status == GONE:
                self.close_connection = True
                return
            if fault is not None and fault.status != CUT:
                return self._send(fault.status, {**fault.headers}, b'{"error": "a fault that the test requested"}')
            status, headers, data = self._answer(url.path, url.query, body)
            self._send(status, headers, data, cut=fault is not None)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve

        def _answer(self, path: str, query: str, body: bytes) -> Answer:
            method = "GET" if self.command == "HEAD" else self.command
            for wanted, pattern, function in _ROUTES:
                if wanted == method and (match := re.fullmatch(pattern, path)):
                    groups = {"kind": "models", **{k: v for k, v in match.groupdict().items() if v is not None}}
                    options = {key: values[0] for key, values in parse_qs(query).items()}
                    try:
                        return function(_Request(hub, self.command, options, self.headers, body, groups))
                    except _Error as error:
                        headers = {"X-Error-Code": error.code, "X-Error-Message": str(error)}
                        return _answer({"error": str(error)}, error.status, headers)
            return _answer({"error": f"{self.command} {path} is not known here"}, 404)

        def _send(self, status: int, headers: dict[str, str], data: bytes, cut: bool = False) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data[: len(data) // 2] if cut else data)
            if cut:
                self.wfile.flush()
                self.close_connection = True

    return Handler
