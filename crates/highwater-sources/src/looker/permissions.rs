//! Who may do what with content: metadata, which says whether something has grants of its own, and these.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use highwater_core::{Failure, FailureKind, Key};
use serde_json::value::RawValue;

use super::{
    Looker,
    census::{Census, Spot},
    content::Reader,
    json::Node,
    kinds::Kind,
    listing::{Listed, add_group, is_refusal, listed, rows},
    reply::malformed,
};
use crate::{Call, escape::escaped};

/// By which content metadata is found.
const MEMBERS: &str = "id,parent_id,content_metadata_id,folder_id,folder(id)";
/// Lists asked for at once.
const LISTS_AT_ONCE: usize = 4;

impl Looker {
    /// That of everything in a folder comes in one answer, found by the metadata of the folder.
    pub(super) async fn metadata(&self, census: &mut Census, call: &Call) -> Result<(), Failure> {
        let folders = listed(&self.list(&format!("folders?fields={MEMBERS}"), call).await?, "folders")?;
        let above: HashMap<String, String> =
            folders.iter().filter_map(|one| Some((one.key.to_string(), one.metadata.clone()?))).collect();
        let mut all: Vec<Listed> =
            folders.into_iter().map(|one| Listed { folder: one.parent.clone(), ..one }).collect();
        for name in ["dashboards", "looks", "boards"] {
            let members = match self.list(&format!("{name}?fields={MEMBERS}"), call).await {
                Ok(body) => listed(&body, name),
                Err(failure) => Err(failure),
            };
            all.extend(self.seen_of(census, name, members)?);
        }
        for name in ["dashboards", "looks"] {
            let path = format!("{name}/search?deleted=true&sorts=id&fields={MEMBERS}&");
            let trash = self.walk::<Listed>(&path, call).await.map(|walked| {
                walked
                    .unlisted
                    .into_iter()
                    .for_each(|one| census.leave_out(&format!("{name}, {}", one.part), one.failure));
                walked.rows.into_iter().chain(walked.earlier).collect()
            });
            all.extend(self.seen_of(census, name, trash)?);
        }
        let mut groups: BTreeMap<String, Vec<Key>> = BTreeMap::new();
        for Listed { metadata, folder, .. } in all {
            let Some(key) = metadata.map(|metadata| Key::from(metadata.as_str())) else { continue };
            match folder.and_then(|folder| above.get(&folder)) {
                Some(parent) => groups.entry(parent.clone()).or_default().push(key),
                None => census.add(key, Spot::Alone),
            }
        }
        for (parent, keys) in groups {
            add_group(census, format!("content_metadata?parent_id={}", escaped(&parent)), keys);
        }
        Ok(())
    }

    /// What cannot be listed has metadata all the same. That it may not be seen its own stream says, if there is one.
    fn seen_of(
        &self,
        census: &mut Census,
        name: &str,
        listed: Result<Vec<Listed>, Failure>,
    ) -> Result<Vec<Listed>, Failure> {
        match listed {
            Err(failure) if self.is_over(&failure) => Err(failure),
            Err(failure) if self.mirrors(name) && is_refusal(failure.kind) => {
                census.has_gaps = true;
                Ok(Vec::new())
            }
            Err(failure) => {
                census.leave_out(name, forbidden(failure));
                Ok(Vec::new())
            }
            Ok(listed) => Ok(listed),
        }
    }

    /// Grants, of content that has its own.
    pub(super) async fn access(&self, census: &mut Census, kind: &'static Kind, call: &Call) -> Result<(), Failure> {
        self.read_naming(census, kind, call).await?;
        let own: Vec<Key> = {
            let references = self.references();
            references.own_access.iter().filter(|(_, has_own)| **has_own).map(|(key, _)| key.clone()).collect()
        };
        let asked = own.into_iter().map(|key| async move { (self.grants(&key, call).await, key) });
        let lists: Vec<_> = stream::iter(asked).buffered(LISTS_AT_ONCE).collect().await;
        if let (true, Some((Err(failure), _))) = (lists.iter().all(|(list, _)| list.is_err()), lists.last()) {
            return Err(failure.clone());
        }
        let reader = self.reader(kind);
        for (list, metadata) in lists {
            match list.and_then(|body| grants_in(&reader, body.as_deref())) {
                Ok(grants) => grants.into_iter().for_each(|(key, body)| census.add_body(key, body)),
                Err(failure) if self.is_over(&failure) => return Err(failure),
                Err(failure) => census.leave_out(&format!("content_metadata_id {metadata}"), failure),
            }
        }
        Ok(())
    }

    /// None if it is gone with what it is for.
    async fn grants(&self, metadata: &Key, call: &Call) -> Result<Option<Bytes>, Failure> {
        let id = escaped(&metadata.to_string());
        match self.list(&format!("content_metadata_access?content_metadata_id={id}"), call).await {
            Err(failure) if failure.kind == FailureKind::NotFound => {
                match self.answer(&format!("content_metadata/{id}"), call).await.map_err(Failure::from) {
                    Ok(_) => Err(forbidden(failure)),
                    Err(failure) if failure.kind == FailureKind::NotFound => Ok(None),
                    Err(failure) => Err(failure),
                }
            }
            list => list.map(Some),
        }
    }
}

fn grants_in(reader: &Reader, body: Option<&[u8]>) -> Result<Vec<(Key, String)>, Failure> {
    let Some(body) = body else { return Ok(Vec::new()) };
    let what = reader.kind.name;
    let named = |raw: &RawValue| {
        let key = Node::read(raw.get()).and_then(|node| reader.key_of(&node));
        Ok((key.ok_or_else(|| malformed(what))?, raw.get().to_owned()))
    };
    rows(body, what)?.into_iter().map(named).collect()
}

/// What answers 404 and is there may not be seen.
fn forbidden(failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::NotFound => Failure::new(FailureKind::Forbidden, failure.message),
        _ => failure,
    }
}
