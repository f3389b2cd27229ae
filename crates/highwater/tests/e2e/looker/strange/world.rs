//! What a strange instance holds, and how it answers where no rule of the test does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use crate::support::{Ask, Reply, Staged};

/// Types that come in one answer, which knows of no pages.
const WHOLE: [&str; 12] = [
    "folders",
    "boards",
    "roles",
    "permission_sets",
    "model_sets",
    "lookml_models",
    "scheduled_plans",
    "themes",
    "connections",
    "projects",
    "datagroups",
    "user_attributes",
];

/// All types are empty lists at first.
#[derive(Default)]
pub(super) struct World {
    objects: BTreeMap<&'static str, Vec<Json>>,
    /// No page has more rows, whatever is asked for.
    pub(super) limit_max: Option<usize>,
    /// Of lists that know a limit, if none is asked for.
    pub(super) limit_usual: Option<usize>,
    /// Ids that are taken out of a page after its limit was applied.
    pub(super) hidden: BTreeSet<String>,
    /// Ids that the lists of all dashboards and of all looks leave out.
    pub(super) unlisted: BTreeSet<String>,
}

impl Staged for World {
    fn answer(&self, ask: &Ask) -> Reply {
        let parts: Vec<&str> = ask.path.split('/').collect();
        match parts.as_slice() {
            ["login"] => said(&json!({"access_token": "token", "token_type": "Bearer", "expires_in": 3600})),
            ["logout"] => Reply::ok(""),
            ["user"] => said(&json!({"id": "1"})),
            ["dashboards"] => list(ask, self.listed("dashboards", "lookml_dashboards")),
            ["looks"] => list(ask, self.listed("looks", "")),
            [kind @ ("dashboards" | "looks"), "search"] => {
                let is_wanted = ask.word("deleted") == Some("true");
                self.page(ask, self.chosen(kind, |object| is_trash(object) == is_wanted))
            }
            ["dashboards", "lookml", "search"] => self.page(ask, self.all("lookml_dashboards")),
            ["alerts", "search"] => self.page(ask, self.all("alerts")),
            [kind @ ("users" | "groups")] => self.page(ask, self.all(kind)),
            // Everybody is in the first group, and no group is in another.
            ["groups", "1", "users"] => self.page(ask, self.all("users")),
            ["groups", _, "users" | "groups"] => self.page(ask, Vec::new()),
            ["folders", id, "looks"] => {
                let looks = self.chosen("looks", |look| look["folder_id"] == **id && !is_trash(look));
                list(ask, looks.iter().map(|look| self.with_query(look)).collect())
            }
            ["lookml_models", model, "explores", name] => {
                said(&json!({"id": format!("{model}::{name}"), "name": name, "model_name": model}))
            }
            ["content_metadata"] => self.selected("content_metadata", "parent_id", ask),
            ["content_metadata_access"] => self.selected("content_metadata_access", "content_metadata_id", ask),
            // Grants are listed by what they are for, and in no other way.
            ["content_metadata_access", _] => Reply::status(404),
            [kind] if WHOLE.contains(kind) => list(ask, self.all(kind)),
            [kind, id] => self.one(kind, id),
            _ => Reply::status(404),
        }
    }
}

impl World {
    pub(super) fn with(mut self, kind: &'static str, objects: Vec<Json>) -> World {
        self.objects.entry(kind).or_default().extend(objects);
        self
    }

    /// Of folder 1, each with its metadata and a query.
    pub(super) fn with_dashboards(self, count: u32) -> World {
        let metadata = (1..=count).map(|id| metadata(1000 + id, Some(101))).collect();
        let queries = (1..=count).map(|id| query(&format!("q{id}"))).collect();
        let dashboards = (1..=count).map(dashboard).collect();
        self.with("dashboards", dashboards).with("content_metadata", metadata).with("queries", queries)
    }

    /// Of folder 2, each with its metadata and a query.
    pub(super) fn with_looks(self, count: u32) -> World {
        let metadata = (1..=count).map(|id| metadata(500 + id, Some(102))).collect();
        let queries = (1..=count).map(|id| query(&format!("lq{id}"))).collect();
        let looks = (1..=count).map(look).collect();
        self.with("looks", looks).with("content_metadata", metadata).with("queries", queries)
    }

    /// Three folders and twelve dashboards. Folder 2 has grant 1, and dashboard 5 has grant 2.
    pub(super) fn granted() -> World {
        let mut world = World::default().with_dashboards(12);
        for id in 1..=3 {
            let above = (id > 1).then_some(101);
            world.put("folders", folder(id));
            world.put("content_metadata", metadata(100 + id, above));
        }
        for (id, of) in [("1", "102"), ("2", "1005")] {
            world.object("content_metadata", of)["inherits"] = false.into();
            let grant = json!({"id": id, "content_metadata_id": of, "permission_type": "view", "group_id": "1"});
            world.put("content_metadata_access", grant);
        }
        world
    }

    pub(super) fn put(&mut self, kind: &'static str, object: Json) {
        self.objects.entry(kind).or_default().push(object);
    }

    pub(super) fn remove(&mut self, kind: &str, id: &str) -> Json {
        let objects = self.objects.get_mut(kind).unwrap();
        let place = objects.iter().position(|object| id_of(object) == id).unwrap();
        objects.remove(place)
    }

    pub(super) fn object(&mut self, kind: &str, id: &str) -> &mut Json {
        let objects = self.objects.get_mut(kind).unwrap();
        objects.iter_mut().find(|object| id_of(object) == id).unwrap()
    }

    pub(super) fn trash(&mut self, kind: &str, id: &str) {
        let object = self.object(kind, id);
        object["deleted"] = true.into();
        object["deleted_at"] = "2025-05-05T00:00:00.000Z".into();
    }

    pub(super) fn restore(&mut self, kind: &str, id: &str) {
        let object = self.object(kind, id);
        object["deleted"] = false.into();
        object["deleted_at"] = Json::Null;
    }

    /// Whether the answer to this is a list that has such an object.
    pub(super) fn shows(&self, ask: &Ask, id: &str) -> bool {
        let rows: Vec<Json> = serde_json::from_str(&self.answer(ask).body).unwrap();
        rows.iter().any(|row| id_of(row) == id)
    }

    fn all(&self, kind: &str) -> Vec<Json> {
        self.objects.get(kind).cloned().unwrap_or_default()
    }

    fn chosen(&self, kind: &str, is_meant: impl Fn(&Json) -> bool) -> Vec<Json> {
        self.all(kind).into_iter().filter(is_meant).collect()
    }

    fn listed(&self, kind: &str, another: &str) -> Vec<Json> {
        let is_meant = |object: &Json| !is_trash(object) && !self.unlisted.contains(&id_of(object));
        let mut rows = self.chosen(kind, is_meant);
        rows.extend(self.chosen(another, is_meant));
        rows
    }

    fn page(&self, ask: &Ask, mut rows: Vec<Json>) -> Reply {
        if ask.word("sorts").is_some() {
            rows.sort_by_key(|row| id_of(row).parse().unwrap_or(u64::MAX));
        }
        let asked = ask.number("limit").or(self.limit_usual).unwrap_or(usize::MAX);
        let limit = asked.min(self.limit_max.unwrap_or(usize::MAX));
        let shown = rows.into_iter().skip(ask.number("offset").unwrap_or(0)).take(limit);
        list(ask, shown.filter(|row| !self.hidden.contains(&id_of(row))).collect())
    }

    /// Those whose member is what the query says.
    fn selected(&self, kind: &str, member: &str, ask: &Ask) -> Reply {
        let word = ask.word(member).unwrap_or_default();
        list(ask, self.chosen(kind, |object| object[member] == word))
    }

    fn one(&self, kind: &str, id: &str) -> Reply {
        let find = |kind: &str| self.all(kind).into_iter().find(|object| id_of(object) == id);
        let written = || find("lookml_dashboards").filter(|_| kind == "dashboards");
        match find(kind).or_else(written) {
            Some(look) if kind == "looks" => said(&self.with_query(&look)),
            Some(object) => said(&object),
            None => Reply::status(404),
        }
    }

    /// A look by itself, or among those of its folder, says more than in a page.
    fn with_query(&self, look: &Json) -> Json {
        let query = self.all("queries").into_iter().find(|query| query["id"] == look["query_id"]);
        let mut look = look.clone();
        look["query"] = query.unwrap_or_default();
        look
    }
}

fn said(body: &Json) -> Reply {
    Reply::ok(body.to_string())
}

fn list(ask: &Ask, rows: Vec<Json>) -> Reply {
    said(&Json::Array(ask.fields(rows)))
}

fn is_trash(object: &Json) -> bool {
    object["deleted"] == true
}

/// By its name if there is no such member.
fn id_of(object: &Json) -> String {
    match object.get("id") {
        Some(Json::String(id)) => id.clone(),
        Some(other) => other.to_string(),
        None => object["name"].as_str().unwrap_or_default().to_owned(),
    }
}

/// Objects that have a name and no more.
pub(super) fn named(count: u32) -> Vec<Json> {
    (1..=count).map(|id| json!({"id": id.to_string(), "name": format!("N{id}")})).collect()
}

pub(super) fn lookml_dashboards(count: u32) -> Vec<Json> {
    (1..=count).map(|id| json!({"id": format!("m::d{id}"), "title": format!("L{id}")})).collect()
}

pub(super) fn query(id: &str) -> Json {
    json!({"id": id, "model": "m", "view": "v", "fields": ["a.b"]})
}

fn folder(id: u32) -> Json {
    let above = (id > 1).then_some("1");
    json!({
        "id": id.to_string(),
        "name": format!("F{id}"),
        "parent_id": above,
        "content_metadata_id": (100 + id).to_string(),
    })
}

fn metadata(id: u32, above: Option<u32>) -> Json {
    json!({"id": id.to_string(), "parent_id": above.map(|above| above.to_string()), "inherits": true})
}

fn dashboard(id: u32) -> Json {
    let query_id = format!("q{id}");
    json!({
        "id": id.to_string(),
        "title": format!("D{id}"),
        "deleted": false,
        "deleted_at": null,
        "folder": {"id": "1"},
        "created_at": "2024-01-02T03:04:05.000Z",
        "updated_at": "2024-01-02T03:04:05.000Z",
        "content_metadata_id": (1000 + id).to_string(),
        "dashboard_elements": [{"id": format!("e{id}"), "query_id": query_id, "query": query(&query_id)}],
    })
}

fn look(id: u32) -> Json {
    json!({
        "id": id.to_string(),
        "title": format!("K{id}"),
        "deleted": false,
        "deleted_at": null,
        "folder_id": "2",
        "folder": {"id": "2"},
        "query_id": format!("lq{id}"),
        "created_at": "2024-01-02T03:04:05.000Z",
        "updated_at": "2024-01-02T03:04:05.000Z",
        "content_metadata_id": (500 + id).to_string(),
    })
}
