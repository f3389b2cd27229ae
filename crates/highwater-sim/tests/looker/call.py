"""Calls every simulated operation with Looker's own client, and prints as JSON what it was told.

Usage: call.py HOST:PORT
"""

import ast
import inspect
import json
import os
import re
import sys
import typing
import urllib.error
import urllib.parse
import urllib.request

site = f"http://{sys.argv[1]}"
# A base address with a slash at its end makes the client ask for `//api/4.0/login`.
os.environ.update(LOOKERSDK_BASE_URL=f"{site}/", LOOKERSDK_CLIENT_ID="sim-client", LOOKERSDK_CLIENT_SECRET="sim-secret")

import attr
import looker_sdk
from looker_sdk import error, models40
from looker_sdk.sdk.api40 import methods

found = {}


def page(name):
    with urllib.request.urlopen(f"{site}/_sim/{name}") as answer:
        return json.load(answer)


def raw(path):
    request = urllib.request.Request(f"{site}/api/4.0{path}", headers={"Authorization": f"token {token}"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def ids(objects, key="id"):
    return [getattr(one, key) for one in objects]


def refused(call):
    try:
        call()
    except error.SDKError as refusal:
        return [refusal.message, [[detail.field, detail.code] for detail in refusal.errors or []]]
    return None


sdk = looker_sdk.init40()
found["version"] = sdk.versions().looker_release_version
found["me"] = sdk.me().id
token = sdk.login("sim-client", "sim-secret").access_token


def every(search, **wanted):
    objects, offset = [], 0
    while True:
        some = search(limit=7, offset=offset, **wanted)
        if not some:
            return objects
        objects += some
        offset += len(some)


# Lists, as ids by type.
dashboards = every(sdk.search_dashboards, sorts="id", deleted="false")
trash = every(sdk.search_dashboards, sorts="id", deleted="true")
looks = every(sdk.search_looks, sorts="id", deleted=False)
folders = sdk.all_folders()
models = sdk.all_lookml_models(include_internal=True, include_self_service=True)
found["dashboards"] = ids(dashboards)
found["trash"] = ids(trash)
found["all_dashboards"] = ids(sdk.all_dashboards())
found["lookml_dashboards"] = ids(every(sdk.search_lookml_dashboards, sorts="id"))
found["looks"] = ids(looks)
found["all_looks"] = ids(sdk.all_looks())
found["trashed_looks"] = ids(sdk.search_looks(deleted=True))
found["folders"] = ids(folders)
found["folder_search"] = ids(every(sdk.search_folders, sorts="id"))
found["folder_looks"] = [look.id for folder in folders for look in sdk.folder_looks(folder.id) if look.query.slug]
found["folder_dashboards"] = [one.id for folder in folders for one in sdk.folder_dashboards(folder.id)]
found["folder_children"] = [child.id for folder in folders for child in sdk.folder_children(folder.id)]
found["boards"] = ids(sdk.all_boards())
found["board_search"] = ids(every(sdk.search_boards, sorts="id"))
found["users"] = ids(every(sdk.all_users, sorts="id"))
found["user_search"] = ids(every(sdk.search_users, sorts="id"))
found["some_users"] = ids(sdk.all_users(ids=models40.DelimSequence(["1", "2"]), sorts="id"))
found["groups"] = ids(every(sdk.all_groups, sorts="id"))
found["group_search"] = ids(every(sdk.search_groups, sorts="id"))
found["roles"] = ids(sdk.all_roles())
found["role_search"] = ids(every(sdk.search_roles, sorts="id"))
found["permission_sets"] = ids(sdk.all_permission_sets())
found["permission_set_search"] = ids(every(sdk.search_permission_sets, sorts="id"))
found["model_sets"] = ids(sdk.all_model_sets())
found["model_set_search"] = ids(every(sdk.search_model_sets, sorts="id"))
found["lookml_models"] = ids(models, "name")
found["scheduled_plans"] = ids(sdk.all_scheduled_plans(all_users=True))
found["own_plans"] = ids(sdk.all_scheduled_plans())
found["alerts"] = ids(sdk.search_alerts(all_owners=True))
found["themes"] = ids(sdk.all_themes())
found["theme_search"] = ids(every(sdk.search_themes, sorts="id"))
found["connections"] = ids(sdk.all_connections(), "name")
found["projects"] = ids(sdk.all_projects())
found["datagroups"] = ids(sdk.all_datagroups())
found["user_attributes"] = ids(sdk.all_user_attributes(sorts="name"))

# Everything alone: what its own id and first title say.
explores = [sdk.lookml_model_explore(model.name, explore.name) for model in models for explore in model.explores]
found["explores"] = ids(explores)
metadata = {one.content_metadata_id for one in [*dashboards, *trash, *looks, *folders, *sdk.all_boards()]}
metadata = [sdk.content_metadata(one) for one in sorted(metadata)]
found["content_metadata"] = ids(metadata)
found["children"] = [child.id for one in metadata if one.folder_id for child in sdk.all_content_metadatas(one.id)]
found["grants"] = [grant.id for one in metadata for grant in sdk.all_content_metadata_accesses(one.id)]
elements = [element for one in [*dashboards, *trash] for element in one.dashboard_elements]
queries = {element.query_id for element in elements if element.query_id} | {look.query_id for look in looks}
merges = [sdk.merge_query(element.merge_result_id) for element in elements if element.merge_result_id]
queries |= {source.query_id for merge in merges for source in merge.source_queries}
found["queries"] = ids([sdk.query(query) for query in sorted(queries)])
found["by_slug"] = sdk.query_for_slug(min(queries)).id
found["merge_queries"] = ids(merges)
found["elements"] = ids(sdk.search_dashboard_elements(deleted=False))
found["elements_of"] = [element.id for one in dashboards for element in sdk.dashboard_dashboard_elements(one.id)]
found["members"] = {one: [ids(sdk.all_group_users(one)), ids(sdk.all_group_groups(one))] for one in found["groups"]}
found["holders"] = {one: [ids(sdk.role_users(one)), ids(sdk.role_groups(one))] for one in found["roles"]}
found["plans_of"] = [
    plan.id for one in dashboards for plan in sdk.scheduled_plans_for_dashboard(one.id, all_users=True)
] + [plan.id for one in [*looks, *sdk.search_looks(deleted=True)] for plan in sdk.scheduled_plans_for_look(one.id, all_users=True)]
found["lookml"] = [sdk.dashboard_lookml(one).dashboard_id for one in found["lookml_dashboards"]]
alone = {
    "dashboards": (sdk.dashboard, "id"), "lookml_dashboards": (sdk.dashboard, "id"), "looks": (sdk.look, "id"),
    "folders": (sdk.folder, "id"), "boards": (sdk.board, "id"), "users": (sdk.user, "id"), "groups": (sdk.group, "id"),
    "roles": (sdk.role, "id"), "permission_sets": (sdk.permission_set, "id"), "model_sets": (sdk.model_set, "id"),
    "lookml_models": (sdk.lookml_model, "name"), "scheduled_plans": (sdk.scheduled_plan, "id"),
    "alerts": (sdk.get_alert, "id"), "themes": (sdk.theme, "id"), "connections": (sdk.connection, "name"),
    "projects": (sdk.project, "id"), "datagroups": (sdk.datagroup, "id"), "user_attributes": (sdk.user_attribute, "id"),
}
found["alone"] = [
    f"{kind} {one}" for kind, (call, key) in alone.items() for one in found[kind] if getattr(call(one), key) != one
]
nested = sdk.dashboard(found["dashboards"][0], fields="id,dashboard_elements(id,query(model,view))")
found["nested"] = [nested.id, nested.title, nested.dashboard_elements[0].title, nested.dashboard_elements[0].query.model is not None]

# Errors, as the client understands them.
found["errors"] = {
    "gone": refused(lambda: sdk.dashboard("999999")),
    "number": refused(lambda: sdk.query("17")),
    "sorts": refused(lambda: sdk.search_dashboards(sorts="updated_at")),
    "parent": refused(lambda: sdk.all_content_metadata_accesses("999999")),
}


# Names and types of every body, against the client's models. What clients do not know begins with `x_`.
def strange(model, body, where):
    if typing.get_origin(model) is typing.Union:
        model = next(one for one in typing.get_args(model) if one is not type(None))
    if isinstance(model, typing.ForwardRef):
        model = model.__forward_arg__
    if isinstance(model, str):
        model = getattr(models40, model.strip("'"), None)
    if body is None or model is None or model is typing.Any:
        return []
    if typing.get_origin(model) is not None and isinstance(body, list):
        (inner,) = typing.get_args(model)
        return [line for one in body for line in strange(inner, one, where)]
    if attr.has(model):
        if not isinstance(body, dict):
            return [f"{where}: no object"]
        known = {field.name.rstrip("_"): field.type for field in attr.fields(model)}
        unknown = [f"{where}.{name}" for name in body if name not in known and not name.startswith("x_")]
        return unknown + [line for name in body if name in known for line in strange(known[name], body[name], f"{where}.{name}")]
    simple = {str: str, int: int, bool: bool, float: (int, float)}.get(model)
    wrong = simple is not None and (not isinstance(body, simple) or (simple is int and isinstance(body, bool)))
    return [f"{where}: {body!r} is no {model}"] if wrong else []


quote = lambda one: urllib.parse.quote(one, safe="")
shapes = [
    ("/dashboards", models40.DashboardBase), ("/dashboards/search", models40.Dashboard), ("/looks", models40.Look),
    ("/dashboards/search?deleted=true", models40.Dashboard), ("/dashboards/lookml/search", models40.Dashboard),
    ("/looks/search", models40.Look), ("/folders", models40.FolderBase), ("/folders/search", models40.Folder),
    ("/boards", models40.Board), ("/boards/search", models40.Board), ("/users", models40.User),
    ("/groups", models40.Group), ("/roles", models40.Role), ("/permission_sets", models40.PermissionSet),
    ("/model_sets", models40.ModelSet), ("/lookml_models?include_internal=true", models40.LookmlModel),
    ("/scheduled_plans?all_users=true", models40.ScheduledPlan), ("/alerts/search?all_owners=true", models40.Alert),
    ("/themes", models40.Theme), ("/connections", models40.DBConnection), ("/projects", models40.Project),
    ("/datagroups", models40.Datagroup), ("/user_attributes", models40.UserAttribute), ("/user", models40.User),
    ("/dashboard_elements/search", models40.DashboardElement), ("/versions", models40.ApiVersion),
]
shapes += [(f"/looks/{one}", models40.LookWithQuery) for one in found["looks"][:5]]
shapes += [(f"/folders/{one}", models40.Folder) for one in found["folders"][:5]]
shapes += [(f"/folders/{one}/looks", models40.LookWithQuery) for one in found["folders"][:9]]
shapes += [(f"/queries/{one}", models40.Query) for one in sorted(queries)[:5]]
shapes += [(f"/merge_queries/{one}", models40.MergeQuery) for one in found["merge_queries"][:5]]
shapes += [(f"/content_metadata/{one}", models40.ContentMeta) for one in found["content_metadata"][:9]]
shapes += [(f"/content_metadata_access?content_metadata_id={one}", models40.ContentMetaGroupUser) for one in found["content_metadata"]]
shapes += [(f"/lookml_models/{one.replace('::', '/explores/')}", models40.LookmlModelExplore) for one in found["explores"][:5]]
shapes += [(f"/dashboards/lookml/{quote(one)}", models40.DashboardLookml) for one in found["lookml_dashboards"]]
found["strange"] = []
for path, model in shapes:
    body = raw(path)
    for one in body if isinstance(body, list) else [body]:
        found["strange"] += strange(model, one, path)
found["strange"] = sorted(set(found["strange"]))

# Paths and parameters, as the client has them and as the simulator takes them.
types = {"int": "number", "bool": "flag"}
known = {}
for name, method in inspect.getmembers(methods.Looker40SDK, inspect.isfunction):
    source = inspect.getsource(method)
    call = re.search(r'self\.(get|post|delete)\(\s*(?:path=)?f?"(/[^"]*)"(.*)', source, re.S)
    if call is None:
        continue
    query = re.search(r"query_params=\{(.*?)\}", call[3], re.S)
    given = re.findall(r'"(\w+)":', query[1]) if query else []
    hints = {p.name: str(p.annotation) for p in inspect.signature(method).parameters.values()}
    kinds = {one: next((kind for text, kind in types.items() if f"[{text}]" in hints[one]), "text") for one in given}
    known[call[1] + " " + re.sub(r"\{(\w+)\}", r":\1", call[2])] = kinds
found["parameters"] = {}
for operation in page("operations"):
    name = f"{operation['verb']} {operation['path']}"
    theirs, ours = known.get(name, {"no": "such operation"}).items(), operation["params"].items()
    if theirs != ours:
        found["parameters"][name] = sorted({param for param, _ in theirs ^ ours})

sdk.auth.logout()
found["stats"] = page("stats")
print(json.dumps(found))
