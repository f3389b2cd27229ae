//! From a request to the operation that is meant, what its path names, and its parameters.

mod table;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

pub(super) use self::table::{Action, Activity, Operation};
use super::{error::ApiError, fields::Fields};
use crate::{
    answer::{SimRequest, Verb},
    params::{Params, decode, hash_text},
};

const ROOT: &str = "/api/4.0";

#[derive(Debug)]
pub(super) enum Route {
    Call(Call),
    /// A page about the simulator itself: no faults, no quota, no counting.
    Page(String, Params),
    Unknown(String),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) operation: &'static Operation,
    /// What the path names, in order.
    pub(super) names: Vec<String>,
    pub(super) params: Params,
}

impl Route {
    pub(super) fn parse(request: &SimRequest<'_>) -> Self {
        let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
        let (path, params) = (collapsed(path), Params::parse(query));
        if let Some(page) = path.strip_prefix("/_sim/") {
            return Route::Page(page.to_owned(), params);
        }
        // Looker's own client ends its session by a path without a version.
        let inner = match &*path {
            "/api/logout" => "/logout",
            "/versions" => "/versions",
            other => other.strip_prefix(ROOT).unwrap_or(""),
        };
        for operation in &table::OPERATIONS {
            if let Some(names) = matched(operation, request.verb, inner) {
                return Route::Call(Call { operation, names, params });
            }
        }
        Route::Unknown(inner.to_owned())
    }
}

impl Call {
    pub(super) fn name(&self, at: usize) -> &str {
        self.names.get(at).map_or("", String::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.params.first(name).and_then(|text| text.parse().ok())
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.params.first(name) == Some("true")
    }

    pub(super) fn fields(&self) -> Option<Fields> {
        self.params.first("fields").and_then(Fields::parse)
    }

    /// The same for requests that ask the same.
    pub(super) fn key(&self) -> u64 {
        let start = hash_text(hash_text(11, self.operation.verb_name()), self.operation.path);
        let named = self.names.iter().fold(start, |hash, name| hash_text(hash, name));
        let mut given: Vec<(&str, &str)> = self.params.pairs().collect();
        given.sort_unstable();
        given.into_iter().fold(named, |hash, (name, value)| hash_text(hash_text(hash, name), value))
    }

    /// Looker refuses parameters that it does not know, and values of another type.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        for (name, value) in self.params.pairs() {
            let Some(kind) = self.operation.parameter(name) else {
                return Err(ApiError::invalid(name, "unknown", format!("{name} is not a parameter of this operation")));
            };
            let fits = match kind {
                Parameter::Text => true,
                Parameter::Number => value.parse::<u64>().is_ok(),
                Parameter::Flag => matches!(value, "true" | "false"),
            };
            if !fits {
                return Err(ApiError::invalid(name, "invalid", format!("{value} is not valid for {name}")));
            }
        }
        let fields = self.params.first("fields").filter(|text| Fields::parse(text).is_none());
        fields
            .map_or(Ok(()), |text| Err(ApiError::invalid("fields", "invalid", format!("{text} is no list of fields"))))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameter {
    Text,
    Number,
    Flag,
}

impl Parameter {
    const fn as_str(self) -> &'static str {
        match self {
            Parameter::Text => "text",
            Parameter::Number => "number",
            Parameter::Flag => "flag",
        }
    }
}

/// What is simulated, for whoever wants to compare it with Looker's own documents.
pub(super) fn operations() -> Value {
    let one = |operation: &Operation| {
        let params: Map<String, Value> =
            operation.parameters().map(|(name, kind)| (name.to_owned(), json!(kind.as_str()))).collect();
        json!({
            "verb": operation.verb_name(), "path": operation.path, "params": params,
            "activity": operation.activity.as_str(),
        })
    };
    table::OPERATIONS.iter().map(one).collect()
}

impl Operation {
    pub(super) const fn verb_name(&self) -> &'static str {
        match self.verb {
            Verb::Post => "post",
            Verb::Delete => "delete",
            _ => "get",
        }
    }

    fn parameter(&self, name: &str) -> Option<Parameter> {
        self.parameters().find(|(known, _)| *known == name).map(|(_, kind)| kind)
    }

    fn parameters(&self) -> impl Iterator<Item = (&'static str, Parameter)> {
        self.params.split_whitespace().map(|known| match known.split_once(':') {
            Some((name, "n")) => (name, Parameter::Number),
            Some((name, _)) => (name, Parameter::Flag),
            None => (known, Parameter::Text),
        })
    }
}

/// A base address that ends with a slash gives paths that begin with two.
fn collapsed(path: &str) -> Cow<'_, str> {
    if !path.contains("//") {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len());
    for next in path.chars() {
        if next != '/' || !out.ends_with('/') {
            out.push(next);
        }
    }
    Cow::Owned(out)
}

fn matched(operation: &Operation, verb: Verb, path: &str) -> Option<Vec<String>> {
    if operation.verb != verb {
        return None;
    }
    let (mut steps, mut names) = (path.split('/'), Vec::new());
    for wanted in operation.path.split('/') {
        let step = steps.next()?;
        if wanted.starts_with(':') {
            names.push(decode(step));
        } else if wanted != step {
            return None;
        }
    }
    steps.next().is_none().then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(verb: Verb, target: &str) -> Option<(&'static str, Vec<String>)> {
        match Route::parse(&SimRequest::get(target).sending(verb, b"")) {
            Route::Call(call) => Some((call.operation.path, call.names)),
            _ => None,
        }
    }

    #[test]
    fn paths_lead_to_operations() {
        for (verb, target, path, name) in [
            (Verb::Get, "/api/4.0/dashboards/search?limit=5", "/dashboards/search", ""),
            (Verb::Get, "//api/4.0//dashboards/7", "/dashboards/:dashboard_id", "7"),
            (Verb::Get, "/api/4.0/dashboards/m%3A%3Ad", "/dashboards/:dashboard_id", "m::d"),
            (Verb::Get, "/api/4.0/dashboards/lookml/m::d", "/dashboards/lookml/:dashboard_id", "m::d"),
            (Verb::Post, "//api/4.0/login", "/login", ""),
            (Verb::Delete, "/api/logout", "/logout", ""),
            (Verb::Delete, "/api/4.0/logout", "/logout", ""),
        ] {
            let (found, names) = call(verb, target).unwrap_or_else(|| panic!("{target}"));
            assert_eq!((found, names.first().map_or("", String::as_str)), (path, name), "{target}");
        }
        for target in ["/api/3.1/dashboards", "/dashboards", "/api/4.0/dashboards/7/8", "/api/4.0/nothing"] {
            assert_eq!(call(Verb::Get, target), None, "{target}");
        }
    }

    #[test]
    fn every_path_is_reached_by_itself() {
        for operation in &table::OPERATIONS {
            let (path, _) = call(operation.verb, &format!("{ROOT}{}", operation.path)).unwrap();
            assert_eq!(path, operation.path);
        }
    }

    #[test]
    fn parameters_are_checked() {
        let check = |target: &str| match Route::parse(&SimRequest::get(target)) {
            Route::Call(call) => call.check().is_ok(),
            other => panic!("{other:?}"),
        };
        assert!(check("/api/4.0/looks/search?limit=5&deleted=true&fields=id,folder(id)&sorts=id"));
        for bad in ["limit=-1", "limit=x", "deleted=yes", "fields=id(", "since=7", "updated_at=2020"] {
            assert!(!check(&format!("/api/4.0/looks/search?{bad}")), "{bad}");
        }
    }
}
