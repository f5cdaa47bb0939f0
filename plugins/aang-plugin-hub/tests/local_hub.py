"""A hub on this machine: the endpoints that huggingface_hub's client calls to push and to load.

``python local_hub.py FOLDER`` serves on a free port, which it prints. What is pushed lies under
``FOLDER/NAMESPACE/NAME``, with ``commits.json`` beside the files. It speaks for a user ``ada``, who
may write to the organisation ``engines`` and read ``others``.

FOLDER/refuse holds the beginning of a path whose requests are answered with 403.
"""

import base64
import json
import re
import shutil
import sys
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

TOKENS = {"hf_writes": "write", "hf_reads": "read"}
ROOT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
COMMITS = "commits.json"


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Otherwise the body of an answer waits until the client has confirmed the header.
    disable_nagle_algorithm = True

    def log_message(self, *arguments: object) -> None:
        with (ROOT / "requests.txt").open("a") as log:
            log.write(f"{self.command} {self.path}\n")

    def do_GET(self) -> None:
        self.answer("GET")

    def do_HEAD(self) -> None:
        self.answer("HEAD")

    def do_POST(self) -> None:
        self.answer("POST")

    def do_PUT(self) -> None:
        self.answer("PUT")

    def do_DELETE(self) -> None:
        self.answer("DELETE")

    def answer(self, method: str) -> None:
        path = unquote(urlsplit(self.path).path)
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        refused = ROOT / "refuse"
        if refused.exists() and path.startswith(refused.read_text()):
            self.error(403, "You don't have the rights to create or change this")
            return
        for verb, pattern, function in ROUTES:
            found = re.fullmatch(pattern, path)
            if verb == method and found:
                function(self, *found.groups())
                return
        self.error(404, f"no such endpoint: {method} {path}")

    def send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def json(self, value: object, status: int = 200) -> None:
        self.send(status, json.dumps(value).encode(), Content_Type="application/json")

    def error(self, status: int, message: str, code: str = "") -> None:
        headers = {"X_Error_Message": message} | ({"X_Error_Code": code} if code else {})
        body = json.dumps({"error": message}).encode()
        self.send(status, body, Content_Type="application/json", **headers)

    def role(self) -> str | None:
        _, _, token = self.headers.get("Authorization", "").partition("Bearer ")
        return TOKENS.get(token)

    def may_write(self) -> bool:
        if self.role() is None:
            self.error(401, "Invalid credentials in Authorization header")
        elif self.role() != "write":
            self.error(403, "You have read access but not the required permissions")
        return self.role() == "write"

    def whoami(self) -> None:
        if self.role() is None:
            self.error(401, "Invalid credentials in Authorization header")
            return
        orgs = [{"name": "engines", "roleInOrg": "write"}, {"name": "others", "roleInOrg": "read"}]
        token = {"displayName": "test", "role": self.role()}
        self.json({"type": "user", "name": "ada", "orgs": orgs, "auth": {"accessToken": token}})

    def create(self) -> None:
        if not self.may_write():
            return
        wanted = json.loads(self.body)
        name = f"{wanted.get('organization') or 'ada'}/{wanted['name']}"
        folder = ROOT / name
        if folder.exists():
            self.json({"error": "You already created this model repo"}, 409)
            return
        folder.mkdir(parents=True)
        (folder / ".gitattributes").write_text("*.safetensors filter=lfs\n")
        (folder / COMMITS).write_text(json.dumps([]))
        (folder / "visibility").write_text(wanted.get("visibility") or "public")
        self.json({"url": f"http://{self.headers['Host']}/{name}", "name": name})

    def delete(self) -> None:
        if self.may_write():
            wanted = json.loads(self.body)
            shutil.rmtree(ROOT / (wanted.get("organization") or "ada") / wanted["name"])
            self.json({})

    def validate_yaml(self) -> None:
        _, header, _ = json.loads(self.body)["content"].split("---\n", 2)
        metadata = yaml.safe_load(header)
        known = metadata.get("license") in (None, "mit", "apache-2.0", "cc-by-4.0")
        errors = [] if known else [{"message": f"unknown license {metadata['license']}"}]
        self.json({"errors": errors, "warnings": []}, 400 if errors else 200)

    def repository(self, name: str) -> Path | None:
        folder = ROOT / name
        if not folder.is_dir():
            self.error(404, "Repository not found", "RepoNotFound")
            return None
        return folder

    def info(self, name: str, *_: str) -> None:
        if folder := self.repository(name):
            siblings = [{"rfilename": path} for path in files(folder)]
            visibility = folder / "visibility"
            private = visibility.is_file() and visibility.read_text() == "private"
            about = {"id": name, "modelId": name, "sha": sha(folder), "private": private}
            self.json({**about, "siblings": siblings})

    def tree(self, name: str) -> None:
        if folder := self.repository(name):
            found = [
                {"type": "file", "path": path, "size": (folder / path).stat().st_size, "oid": "0"}
                for path in files(folder)
            ]
            self.json(found)

    def preupload(self, name: str) -> None:
        if self.may_write() and self.repository(name):
            asked = json.loads(self.body)["files"]
            modes = [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if file["path"].endswith(".safetensors") else "regular",
                    "shouldIgnore": False,
                    "oid": None,
                }
                for file in asked
            ]
            self.json({"files": modes})

    def batch(self, name: str) -> None:
        if self.may_write() and self.repository(name):
            here = f"http://{self.headers['Host']}"
            objects = [
                {**wanted, "actions": {"upload": {"href": f"{here}/lfs/{wanted['oid']}"}}}
                for wanted in json.loads(self.body)["objects"]
            ]
            self.json({"transfer": "basic", "objects": objects})

    def store(self, oid: str) -> None:
        (ROOT / "lfs").mkdir(exist_ok=True)
        (ROOT / "lfs" / oid).write_bytes(self.body)
        self.send(200, b"")

    def commit(self, name: str) -> None:
        folder = self.repository(name) if self.may_write() else None
        if folder is None:
            return
        lines = [json.loads(line) for line in self.body.decode().splitlines()]
        header = next(line["value"] for line in lines if line["key"] == "header")
        for line in lines:
            value = line["value"]
            place = folder / value.get("path", "")
            if line["key"] == "deletedFile":
                place.unlink()
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            if line["key"] == "file":
                place.write_bytes(base64.b64decode(value["content"]))
            elif line["key"] == "lfsFile":
                shutil.copy(ROOT / "lfs" / value["oid"], place)
        commits = json.loads((folder / COMMITS).read_text())
        commits.append({"summary": header["summary"], "keys": [line["key"] for line in lines]})
        (folder / COMMITS).write_text(json.dumps(commits))
        address = f"http://{self.headers['Host']}/{name}/commit/{sha(folder)}"
        self.json({"success": True, "commitOid": sha(folder), "commitUrl": address})

    def resolve(self, name: str, path: str) -> None:
        folder = self.repository(name)
        if folder is None:
            return
        if not (folder / path).is_file():
            self.error(404, "Entry not found", "EntryNotFound")
            return
        content = (folder / path).read_bytes()
        etag = sha1(content, usedforsecurity=False).hexdigest()
        self.send(200, content, ETag=f'"{etag}"', X_Repo_Commit=sha(folder))


def files(folder: Path) -> list[str]:
    hidden = {COMMITS, "visibility"}
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in found if path not in hidden)


def sha(folder: Path) -> str:
    return sha1((folder / COMMITS).read_bytes(), usedforsecurity=False).hexdigest()


NAME = r"([\w.-]+/[\w.-]+)"
ROUTES = [
    ("GET", "/api/whoami-v2", Hub.whoami),
    ("POST", "/api/repos/create", Hub.create),
    ("DELETE", "/api/repos/delete", Hub.delete),
    ("POST", "/api/validate-yaml", Hub.validate_yaml),
    ("GET", f"/api/models/{NAME}", Hub.info),
    ("GET", f"/api/models/{NAME}/revision/([^/]+)", Hub.info),
    ("GET", rf"/api/models/{NAME}/tree/[^/]+", Hub.tree),
    ("POST", f"/api/models/{NAME}/preupload/main", Hub.preupload),
    ("POST", rf"/{NAME}\.git/info/lfs/objects/batch", Hub.batch),
    ("PUT", "/lfs/([0-9a-f]{64})", Hub.store),
    ("POST", f"/api/models/{NAME}/commit/main", Hub.commit),
    ("GET", f"/{NAME}/resolve/[^/]+/(.+)", Hub.resolve),
    ("HEAD", f"/{NAME}/resolve/[^/]+/(.+)", Hub.resolve),
]

if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    print(server.server_address[1], flush=True)
    server.serve_forever()
