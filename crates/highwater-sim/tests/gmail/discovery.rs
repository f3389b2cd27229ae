//! Google's discovery document for Gmail, as it comes with Google's client, against the simulator: the same paths, the
//! same parameters, the same scopes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use highwater_sim::{GmailPlan, GmailSim, Reply, Seed, SimRequest, Verb};
use serde_json::{Value, json};

use super::{START, client};

/// What a mirror and its archive have no use for.
const LEFT_OUT: [&str; 13] = [
    "drafts.create",
    "drafts.delete",
    "drafts.get",
    "drafts.list",
    "drafts.send",
    "drafts.update",
    "messages.send",
    "stop",
    "threads.delete",
    "threads.modify",
    "threads.trash",
    "threads.untrash",
    "watch",
];

#[test]
fn paths_parameters_and_scopes_are_those_of_the_discovery_document() {
    if std::env::var_os("HIGHWATER_SKIP_CLIENTS").is_some() {
        eprintln!("skipped: HIGHWATER_SKIP_CLIENTS is set");
        return;
    }
    let document = document(&client::install());
    assert_eq!(document["batchPath"], "batch");
    let mut methods = BTreeMap::new();
    gather(&document["resources"]["users"], &mut methods);
    let bench = Bench::new();
    let everywhere: BTreeSet<&str> = document["parameters"].as_object().unwrap().keys().map(String::as_str).collect();
    let mut simulated = 0;
    for (name, method) in &methods {
        let known = bench.method(method) == Some(name.clone());
        assert_eq!(known, !is_left_out(name), "{name}");
        if known {
            simulated += 1;
            bench.takes_parameters(name, method, &everywhere);
            bench.takes_scopes(name, method, &document);
        }
    }
    assert_eq!(simulated, 21);
}

fn is_left_out(name: &str) -> bool {
    name.starts_with("settings.") || LEFT_OUT.contains(&name)
}

fn document(python: &Path) -> Value {
    let lib = python.parent().unwrap().parent().unwrap().join("lib");
    let inside = "site-packages/googleapiclient/discovery_cache/documents/gmail.v1.json";
    let mut pythons = fs::read_dir(lib).unwrap().map(|entry| entry.unwrap().path().join(inside));
    let path: PathBuf = pythons.find(|path| path.exists()).expect("the client brings the document");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Every method below a resource, by its name as the simulator counts it.
fn gather(resource: &Value, methods: &mut BTreeMap<String, Value>) {
    for method in resource["methods"].as_object().into_iter().flatten().map(|(_, method)| method) {
        let id = method["id"].as_str().unwrap().strip_prefix("gmail.users.").unwrap();
        let name = id.strip_prefix("messages.attachments.").map_or(id.to_owned(), |rest| format!("attachments.{rest}"));
        methods.insert(name, method.clone());
    }
    for (_, below) in resource["resources"].as_object().into_iter().flatten() {
        gather(below, methods);
    }
}

struct Bench {
    sim: GmailSim,
    message: String,
}

impl Bench {
    fn new() -> Self {
        let sim = GmailSim::new(Seed(4), 20, GmailPlan::default(), START);
        let message = sim.truth(0, 1, Duration::ZERO)[0].id.clone();
        Bench { sim, message }
    }

    /// A path of the document with something in its places.
    fn target(&self, method: &Value) -> String {
        let path = method["path"].as_str().unwrap().replace("{userId}", "me");
        let path = path.replace("{messageId}", &self.message).replace("{id}", &self.message);
        format!("/{path}")
    }

    fn ask(&self, method: &Value, query: &str, token: &str) -> (u16, Value) {
        let Some(verb) = Verb::parse(method["httpMethod"].as_str().unwrap()) else { return (405, Value::Null) };
        let (target, authorization) = (format!("{}?{query}", self.target(method)), format!("Bearer {token}"));
        let request = SimRequest::get(&target).sending(verb, b"{}").authorized(&authorization);
        match self.sim.answer(&request, Duration::ZERO).reply {
            Reply::Full(message) => {
                (message.status.as_u16(), serde_json::from_slice(&message.body).unwrap_or(Value::Null))
            }
            other => panic!("{target}: {other:?}"),
        }
    }

    /// What the simulator takes a method of the document for.
    fn method(&self, method: &Value) -> Option<String> {
        let before = self.sim.counts(Duration::ZERO).by_method;
        self.ask(method, "", "nobody");
        let after = self.sim.counts(Duration::ZERO).by_method;
        let counted = after.into_iter().find(|(name, count)| before.get(name) != Some(count));
        counted.map(|(name, _)| name.to_owned())
    }

    fn takes_parameters(&self, name: &str, method: &Value, everywhere: &BTreeSet<&str>) {
        let own = method["parameters"].as_object().unwrap().iter();
        let own: BTreeSet<&str> =
            own.filter(|(_, of)| of["location"] == "query").map(|(name, _)| name.as_str()).collect();
        let all =
            ["maxResults", "pageToken", "q", "labelIds", "labelId", "includeSpamTrash", "format", "metadataHeaders"];
        let all = all.into_iter().chain(["startHistoryId", "historyTypes", "internalDateSource", "neverMarkSpam"]);
        let all = all.chain(["processForCalendar", "deleted", "orderBy"]).chain(everywhere.iter().copied());
        for parameter in all.chain(own.iter().copied()) {
            let (_, body) = self.ask(method, &format!("{parameter}=x"), "sim-access-token");
            let text = body["error"]["message"].as_str().unwrap_or("");
            let documented = own.contains(parameter) || everywhere.contains(parameter);
            assert_eq!(text.contains("Unknown name"), !documented, "{name}: {parameter}: {text}");
        }
    }

    fn takes_scopes(&self, name: &str, method: &Value, document: &Value) {
        let enough: Vec<&str> = method["scopes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for (scope, _) in document["auth"]["oauth2"]["scopes"].as_object().unwrap() {
            let Some(token) = self.token(scope) else { continue };
            let (_, body) = self.ask(method, "", &token);
            let lacking = body["error"]["details"][0]["reason"] == "ACCESS_TOKEN_SCOPE_INSUFFICIENT";
            assert_eq!(lacking, !enough.contains(&scope.as_str()), "{name}: {scope}");
        }
    }

    /// A service account's token for one scope; `None` for scopes of add-ons, settings and sending, which nobody here
    /// grants.
    fn token(&self, scope: &str) -> Option<String> {
        let now = START / 1_000;
        let claims = json!({
            "iss": "robot@project.iam", "sub": "ann@example.com", "scope": scope,
            "aud": "http://127.0.0.1/token", "iat": now, "exp": now + 3_600,
        });
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let assertion = format!("{}.{}.c2ln", part(json!({ "alg": "RS256" })), part(claims));
        let form = format!("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={assertion}");
        let request = SimRequest::get("/token").sending(Verb::Post, form.as_bytes());
        let Reply::Full(message) = self.sim.answer(&request, Duration::ZERO).reply else { return None };
        let body: Value = serde_json::from_slice(&message.body).unwrap();
        body["access_token"].as_str().map(str::to_owned)
    }
}
