"""Calls every simulated method with Google's own client, and prints as JSON what it was told.

Usage: call.py HOST:PORT
"""

import base64
import hashlib
import json
import sys
import urllib.parse
import urllib.request

import google.auth.transport.requests
import google.oauth2.credentials
from google.auth.exceptions import RefreshError
from googleapiclient import discovery
from googleapiclient.errors import HttpError
from googleapiclient.http import BatchHttpRequest, MediaInMemoryUpload

site = f"http://{sys.argv[1]}"
found = {}


def credentials(refresh_token="sim-refresh-token"):
    return google.oauth2.credentials.Credentials(
        None, refresh_token=refresh_token, token_uri=f"{site}/token", client_id="sim-client", client_secret="sim-secret"
    )


def service(credentials):
    # The discovery document that comes with the client says what may be called and with what.
    return discovery.build(
        "gmail", "v1", credentials=credentials, static_discovery=True, client_options={"api_endpoint": site}
    )


def page(name):
    with urllib.request.urlopen(f"{site}/_sim/{name}") as answer:
        return json.load(answer)


def every(resource, request, key):
    entries = []
    while request is not None:
        answer = request.execute()
        entries += answer.get(key, [])
        request = resource.list_next(request, answer)
    return entries


def refused(request):
    try:
        request.execute()
    except HttpError as error:
        details = error.error_details
        reason = details[0]["reason"] if isinstance(details, list) else details
        return [error.status_code, reason, error.reason]
    return None


users = service(credentials()).users()
messages, threads, labels = users.messages(), users.threads(), users.labels()

profile = users.getProfile(userId="me").execute()
found["profile"] = profile
listed = every(messages, messages.list(userId="me", maxResults=100, includeSpamTrash=True), "messages")
found["messages"] = [entry["id"] for entry in listed]
found["sent"] = [e["id"] for e in every(messages, messages.list(userId="me", q="in:sent", labelIds=["SENT"]), "messages")]
found["threads"] = [e["id"] for e in every(threads, threads.list(userId="me", maxResults=50, includeSpamTrash=True), "threads")]
found["labels"] = labels.list(userId="me").execute()["labels"]
found["inbox"] = labels.get(userId="me", id="INBOX").execute()

found["raw"] = {}
for entry in listed:
    message = messages.get(userId="me", id=entry["id"], format="raw").execute()
    raw = base64.urlsafe_b64decode(message["raw"] + "=" * (-len(message["raw"]) % 4))
    found["raw"][entry["id"]] = [
        hashlib.sha256(raw).hexdigest(), len(raw), message["threadId"], message.get("labelIds", []), message["internalDate"]
    ]


def leaves(part):
    return [leaf for child in part["parts"] for leaf in leaves(child)] if "parts" in part else [part]


found["formats"] = {
    name: sorted(messages.get(userId="me", id=listed[0]["id"], format=name).execute()) for name in ["minimal", "metadata", "full", "raw"]
}
found["attachments"] = []
for entry in listed[:60]:
    for leaf in leaves(messages.get(userId="me", id=entry["id"]).execute()["payload"]):
        if "attachmentId" in leaf["body"]:
            got = messages.attachments().get(userId="me", messageId=entry["id"], id=leaf["body"]["attachmentId"]).execute()
            data = base64.urlsafe_b64decode(got["data"] + "=" * (-len(got["data"]) % 4))
            found["attachments"].append([leaf["body"]["size"], len(data)])
found["thread"] = threads.get(userId="me", id=found["threads"][0], format="minimal").execute()["id"]

# Many calls in one request.
found["batched"] = {}


def told(request_id, response, exception):
    found["batched"][request_id] = response["id"] if exception is None else exception.resp.status


batch = BatchHttpRequest(callback=told, batch_uri=f"{site}/batch/gmail/v1")
for number, entry in enumerate(listed[:5]):
    batch.add(messages.get(userId="me", id=entry["id"], format="minimal"), request_id=f"n{number}")
batch.add(messages.get(userId="me", id="00000000000000aa"), request_id="unknown")
batch.execute()

# Labels of one's own.
label = labels.create(userId="me", body={"name": "From the client"}).execute()["id"]
labels.patch(userId="me", id=label, body={"name": "Renamed"}).execute()
found["label"] = labels.update(userId="me", id=label, body={"id": label, "name": "Again"}).execute()["name"]
labels.delete(userId="me", id=label).execute()

# Writes, and what the history says of them.
first, second, third, fourth = found["messages"][:4]
trashed = messages.trash(userId="me", id=first).execute()["labelIds"]
untrashed = messages.untrash(userId="me", id=first).execute()["labelIds"]
found["trash"] = ["TRASH" in trashed, "TRASH" in untrashed]
found["modified"] = messages.modify(userId="me", id=second, body={"addLabelIds": ["STARRED"], "removeLabelIds": ["UNREAD"]}).execute()["labelIds"]
found["batch"] = messages.batchModify(userId="me", body={"ids": [second, third, "00000000000000aa"], "addLabelIds": ["Label_1"]}).execute()
messages.delete(userId="me", id=third).execute()
messages.batchDelete(userId="me", body={"ids": [fourth]}).execute()
mail = b"Date: Tue, 14 Nov 2023 22:13:20 +0000\r\nSubject: from the client\r\n\r\nbody\r\n"
body = {"raw": base64.urlsafe_b64encode(mail).decode(), "labelIds": ["Label_2"]}
found["imported"] = messages.import_(userId="me", body=body).execute()["id"]
found["inserted"] = messages.insert(userId="me", body=body).execute()["id"]
media = MediaInMemoryUpload(mail, mimetype="message/rfc822")
upload = messages.import_(userId="me", body={"labelIds": ["Label_2"]}, media_body=media)
# For uploads the client goes by the document, not by the endpoint that it was given.
upload.uri = site + urllib.parse.urlsplit(upload.uri)._replace(scheme="", netloc="").geturl()
found["uploaded"] = upload.execute()["id"]
found["sha256"] = hashlib.sha256(mail).hexdigest()
history = users.history()
records = every(history, history.list(userId="me", startHistoryId=profile["historyId"], maxResults=3), "history")
found["history"] = {
    key: [entry["message"]["id"] for record in records for entry in record.get(key, [])]
    for key in ["messagesAdded", "messagesDeleted", "labelsAdded", "labelsRemoved"]
}

# Errors, as the client understands them.
found["errors"] = {
    "gone": refused(messages.get(userId="me", id=third)),
    "page": refused(messages.list(userId="me", pageToken="12345")),
    "history": refused(history.list(userId="me", startHistoryId="7")),
    "ids": refused(messages.batchModify(userId="me", body={"ids": ["aa"] * 1001, "addLabelIds": ["STARRED"]})),
    "other": refused(users.getProfile(userId="bob@example.com")),
}
readonly = google.oauth2.credentials.Credentials(
    None, refresh_token="sim-refresh-token", token_uri=f"{site}/token", client_id="sim-client", client_secret="sim-secret",
    scopes=["https://www.googleapis.com/auth/gmail.readonly"],
)
found["errors"]["scope"] = refused(service(readonly).users().messages().trash(userId="me", id=first))
# The client refreshes by itself when a token ends in the middle.
page("expire_tokens")
users.getProfile(userId="me").execute()
found["tokens"] = page("stats")["tokens_issued"]
page("revoke")
try:
    credentials().refresh(google.auth.transport.requests.Request())
except RefreshError as error:
    found["errors"]["revoked"] = error.args[1]["error"]

print(json.dumps(found))
