//! Single objects, and the few answers that are no object of their own.

use serde_json::{Value, json};

use super::{
    Inside,
    build::ME,
    error::ApiError,
    instance::{Record, Sight, State},
    kind::LookerType,
    lists::{DASHBOARD_BASE, LOOK},
    reply::Shown,
    route::{Action, Call},
};

/// The type and id that a call asks for alone.
pub(super) fn subject(call: &Call) -> Option<(LookerType, String)> {
    let name = call.name(0).to_owned();
    Some(match call.operation.action {
        Action::One(LookerType::Dashboards) if name.contains("::") => (LookerType::LookmlDashboards, name),
        Action::One(kind) => (kind, name),
        Action::Explore => (LookerType::Explores, format!("{name}::{}", call.name(1))),
        Action::DashboardLookml => (LookerType::LookmlDashboards, name),
        Action::Me => (LookerType::Users, ME.to_owned()),
        _ => return None,
    })
}

/// One object as it is shown alone.
pub(super) fn one(inside: &mut Inside, call: &Call, kind: LookerType, id: &str) -> Result<Shown, ApiError> {
    let record = inside.instance.find_mut(kind, id).filter(|record| record.sight == Sight::Open);
    let record = record.ok_or_else(ApiError::not_found)?;
    record.gets += u32::from(call.operation.action != Action::Me);
    let template = record.template.clone();
    match (call.operation.action, kind) {
        (Action::DashboardLookml, _) => Ok(Shown::Value(lookml(inside, kind, id))),
        (_, LookerType::Folders) => Ok(Shown::Value(folder(inside, id))),
        _ => Ok(Shown::One(template)),
    }
}

/// With what lies in it.
fn folder(inside: &Inside, id: &str) -> Value {
    let tick = inside.tick();
    let within = |kind, form: &[&str]| -> Vec<Value> {
        let lies = |record: &&Record| record.state == State::Present && record.is_tied(LookerType::Folders, id);
        inside.instance.existing(kind).filter(lies).map(|record| abridged(record, form, tick)).collect()
    };
    let found = inside.instance.find(LookerType::Folders, id);
    let mut body = found.map_or(Value::Null, |record| record.template.value(tick));
    body["dashboards"] = within(LookerType::Dashboards, &DASHBOARD_BASE).into();
    body["looks"] = within(LookerType::Looks, &LOOK).into();
    body
}

fn abridged(record: &Record, form: &[&str], tick: u64) -> Value {
    let mut text = Vec::new();
    record.template.render_part(Some(form), None, tick, &mut text);
    serde_json::from_slice(&text).expect("a body is JSON")
}

fn lookml(inside: &Inside, kind: LookerType, id: &str) -> Value {
    let member = |name| inside.instance.find(kind, id).and_then(|record| record.template.get(name));
    let title = member("title").unwrap_or(Value::Null);
    let text = format!("- dashboard: {}\n  title: {title}\n  layout: newspaper\n", id.replace("::", "_"));
    json!({ "dashboard_id": id, "folder_id": member("folder_id"), "lookml": text })
}

/// The elements of one dashboard, or of all.
pub(super) fn elements(inside: &Inside, call: &Call) -> Result<Shown, ApiError> {
    let tick = inside.tick();
    let of = |record: &Record| match record.template.value(tick)["dashboard_elements"].take() {
        Value::Array(elements) => elements,
        _ => Vec::new(),
    };
    if call.operation.action == Action::ElementsOf {
        let record = inside.instance.find(LookerType::Dashboards, call.name(0));
        let record = record.filter(|record| record.sight == Sight::Open).ok_or_else(ApiError::not_found)?;
        return Ok(Shown::Value(of(record).into()));
    }
    let wanted = if call.is_set("deleted") { State::Trashed } else { State::Present };
    let shown = |record: &&Record| record.state == wanted && record.sight == Sight::Open;
    let fits = |element: &Value| {
        let mut filters = ["dashboard_id", "look_id", "title"].into_iter();
        filters.all(|name| call.params.first(name).is_none_or(|wanted| element[name] == wanted))
    };
    let dashboards = inside.instance.existing(LookerType::Dashboards).filter(shown);
    Ok(Shown::Value(dashboards.flat_map(of).filter(fits).collect()))
}

pub(super) fn versions() -> Value {
    let current = json!({
        "version": "4.0", "full_version": "4.0.26.12", "status": "current",
        "swagger_url": "https://looker.example/api/4.0/swagger.json",
    });
    json!({
        "looker_release_version": "26.12.8", "current_version": current, "supported_versions": [current],
        "api_server_url": "https://looker.example", "web_server_url": "https://looker.example",
    })
}
