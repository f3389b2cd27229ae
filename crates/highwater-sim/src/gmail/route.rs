//! From a request to what is meant: the method of the API, its subject and its parameters.

use super::{
    params::Params,
    plan::CostTable,
    scope::{COMPOSE, INSERT, LABELS, MAIL, METADATA, MODIFY, READONLY},
};
use crate::answer::{SimRequest, Verb};

/// Parameters that every method has.
const EVERYWHERE: [&str; 11] = [
    "$.xgafv",
    "access_token",
    "alt",
    "callback",
    "fields",
    "key",
    "oauth_token",
    "prettyPrint",
    "quotaUser",
    "uploadType",
    "upload_protocol",
];

#[derive(Debug)]
pub(super) enum Route<'a> {
    Call(Call<'a>),
    Token,
    Authorize(Params),
    Revoke(Params),
    Batch,
    /// A page about the simulator itself: no faults, no quota, no counting.
    Page(&'a str, Params),
    Unknown,
}

#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) user: &'a str,
    /// The message, thread or label meant.
    pub(super) id: &'a str,
    pub(super) attachment: &'a str,
    pub(super) params: Params,
    pub(super) uploaded: Uploaded,
}

/// How a body comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uploaded {
    Json,
    /// The bytes of a message, under `/upload`, alone or behind a part of JSON.
    Media,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Method {
    Profile,
    MessagesList,
    MessagesGet,
    AttachmentsGet,
    HistoryList,
    LabelsList,
    LabelsGet,
    LabelsCreate,
    LabelsUpdate,
    LabelsPatch,
    LabelsDelete,
    ThreadsList,
    ThreadsGet,
    Modify,
    Trash,
    Untrash,
    Delete,
    BatchModify,
    BatchDelete,
    Import,
    Insert,
}

impl Method {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Method::Profile => "getProfile",
            Method::MessagesList => "messages.list",
            Method::MessagesGet => "messages.get",
            Method::AttachmentsGet => "attachments.get",
            Method::HistoryList => "history.list",
            Method::LabelsList => "labels.list",
            Method::LabelsGet => "labels.get",
            Method::LabelsCreate => "labels.create",
            Method::LabelsUpdate => "labels.update",
            Method::LabelsPatch => "labels.patch",
            Method::LabelsDelete => "labels.delete",
            Method::ThreadsList => "threads.list",
            Method::ThreadsGet => "threads.get",
            Method::Modify => "messages.modify",
            Method::Trash => "messages.trash",
            Method::Untrash => "messages.untrash",
            Method::Delete => "messages.delete",
            Method::BatchModify => "messages.batchModify",
            Method::BatchDelete => "messages.batchDelete",
            Method::Import => "messages.import",
            Method::Insert => "messages.insert",
        }
    }

    /// Quota units, as published.
    pub(super) const fn cost(self, table: CostTable) -> u32 {
        match (self, table) {
            (Method::Profile | Method::LabelsList | Method::LabelsGet, _) => 1,
            (Method::HistoryList, _) => 2,
            (Method::MessagesList | Method::Modify | Method::Untrash, _) => 5,
            (Method::LabelsCreate | Method::LabelsUpdate | Method::LabelsPatch | Method::LabelsDelete, _) => 5,
            (Method::MessagesGet | Method::AttachmentsGet | Method::Trash, CostTable::New) => 20,
            (Method::MessagesGet | Method::AttachmentsGet | Method::Trash, CostTable::Old) => 5,
            (Method::ThreadsGet, CostTable::New) => 40,
            (Method::ThreadsGet, CostTable::Old) | (Method::ThreadsList | Method::Delete, _) => 10,
            (Method::Import | Method::Insert, _) => 25,
            (Method::BatchModify | Method::BatchDelete, _) => 50,
        }
    }

    /// Any one of them will do.
    pub(super) const fn scopes(self) -> &'static [&'static str] {
        match self {
            Method::Profile => &[MAIL, MODIFY, READONLY, METADATA, COMPOSE],
            Method::AttachmentsGet => &[MAIL, MODIFY, READONLY],
            Method::LabelsList | Method::LabelsGet => &[MAIL, MODIFY, READONLY, METADATA, LABELS],
            Method::LabelsCreate | Method::LabelsUpdate | Method::LabelsPatch | Method::LabelsDelete => {
                &[MAIL, MODIFY, LABELS]
            }
            Method::Modify | Method::Trash | Method::Untrash | Method::BatchModify => &[MAIL, MODIFY],
            Method::Delete | Method::BatchDelete => &[MAIL],
            Method::Import | Method::Insert => &[MAIL, MODIFY, INSERT],
            _ => &[MAIL, MODIFY, READONLY, METADATA],
        }
    }

    /// Whether a query may say this.
    pub(super) fn knows(self, parameter: &str) -> bool {
        let own: &[&str] = match self {
            Method::MessagesList | Method::ThreadsList => {
                &["maxResults", "pageToken", "q", "labelIds", "includeSpamTrash"]
            }
            Method::MessagesGet | Method::ThreadsGet => &["format", "metadataHeaders"],
            Method::HistoryList => &["startHistoryId", "maxResults", "pageToken", "labelId", "historyTypes"],
            Method::Import => &["internalDateSource", "neverMarkSpam", "processForCalendar", "deleted"],
            Method::Insert => &["internalDateSource", "deleted"],
            _ => &[],
        };
        own.contains(&parameter) || EVERYWHERE.contains(&parameter)
    }

    pub(super) const fn is_paged(self) -> bool {
        matches!(self, Method::MessagesList | Method::ThreadsList | Method::HistoryList)
    }
}

impl<'a> Route<'a> {
    pub(super) fn parse(request: &SimRequest<'a>) -> Self {
        let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
        let params = Params::parse(query);
        if let Some(page) = path.strip_prefix("/_sim/") {
            return Route::Page(page, params);
        }
        match (request.verb, path) {
            (Verb::Post, "/token") => return Route::Token,
            (Verb::Post, "/revoke") => return Route::Revoke(params),
            (Verb::Post, "/batch" | "/batch/gmail/v1") => return Route::Batch,
            (Verb::Get, "/o/oauth2/v2/auth") => return Route::Authorize(params),
            _ => {}
        }
        let (path, uploaded) = match path.strip_prefix("/upload") {
            Some(rest) => (rest, Uploaded::Media),
            None => (path, Uploaded::Json),
        };
        let steps: Vec<&str> =
            path.strip_prefix("/gmail/v1/users/").into_iter().flat_map(|rest| rest.split('/')).collect();
        let Some((method, id, attachment)) = resource(request.verb, steps.get(1..).unwrap_or_default()) else {
            return Route::Unknown;
        };
        if uploaded == Uploaded::Media && !matches!(method, Method::Import | Method::Insert) {
            return Route::Unknown;
        }
        Route::Call(Call { method, user: steps[0], id, attachment, params, uploaded })
    }
}

fn resource<'a>(verb: Verb, steps: &[&'a str]) -> Option<(Method, &'a str, &'a str)> {
    Some(match (verb, steps) {
        (Verb::Get, ["profile"]) => (Method::Profile, "", ""),
        (Verb::Get, ["messages"]) => (Method::MessagesList, "", ""),
        (Verb::Get, ["messages", id]) => (Method::MessagesGet, id, ""),
        (Verb::Get, ["messages", id, "attachments", attachment]) => (Method::AttachmentsGet, id, attachment),
        (Verb::Get, ["history"]) => (Method::HistoryList, "", ""),
        (Verb::Get, ["labels"]) => (Method::LabelsList, "", ""),
        (Verb::Get, ["labels", id]) => (Method::LabelsGet, id, ""),
        (Verb::Post, ["labels"]) => (Method::LabelsCreate, "", ""),
        (Verb::Put, ["labels", id]) => (Method::LabelsUpdate, id, ""),
        (Verb::Patch, ["labels", id]) => (Method::LabelsPatch, id, ""),
        (Verb::Delete, ["labels", id]) => (Method::LabelsDelete, id, ""),
        (Verb::Get, ["threads"]) => (Method::ThreadsList, "", ""),
        (Verb::Get, ["threads", id]) => (Method::ThreadsGet, id, ""),
        (Verb::Post, ["messages", "batchModify"]) => (Method::BatchModify, "", ""),
        (Verb::Post, ["messages", "batchDelete"]) => (Method::BatchDelete, "", ""),
        (Verb::Post, ["messages", "import"]) => (Method::Import, "", ""),
        (Verb::Post, ["messages"]) => (Method::Insert, "", ""),
        (Verb::Post, ["messages", id, "modify"]) => (Method::Modify, id, ""),
        (Verb::Post, ["messages", id, "trash"]) => (Method::Trash, id, ""),
        (Verb::Post, ["messages", id, "untrash"]) => (Method::Untrash, id, ""),
        (Verb::Delete, ["messages", id]) => (Method::Delete, id, ""),
        _ => return None,
    })
}
