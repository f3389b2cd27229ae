//! Mailboxes: made once, told of, their credentials kept, refreshed by one at a time.

use std::time::Duration;

use super::scene::{Lab, at};
use crate::{ErrorKind, MailboxId, MailboxNote, MailboxStatus, MailboxStore};

const MINUTE: Duration = Duration::from_secs(60);

fn ann() -> MailboxId {
    MailboxId::new("default", "ann@example.com")
}

pub async fn a_mailbox_is_made_once_and_told_of(lab: Lab) {
    let (store, mail) = (&lab.store, "mail".parse().unwrap());
    let made = store.open_mailbox(&ann(), &mail, at(0)).await.unwrap();
    assert_eq!((&made.id, &made.source, made.status), (&ann(), &mail, MailboxStatus::Connected));
    assert_eq!((made.credentials.as_ref(), made.last_history_id, made.last_synced_at), (None, None, None));
    let upper = MailboxId::new("default", "ANN@example.com");
    assert_eq!(store.open_mailbox(&upper, &mail, at(9)).await.unwrap(), made, "opened again, it is the same");
    let renamed = store.open_mailbox(&ann(), &"post".parse().unwrap(), at(10)).await.unwrap();
    assert_eq!((renamed.source.as_str(), renamed.created_at, renamed.updated_at), ("post", at(0), at(10)));
    let other = MailboxId::new("another", "zoe@example.com");
    store.open_mailbox(&other, &mail, at(1)).await.unwrap();
    let ids: Vec<_> = store.mailboxes().await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [other, ann()]);
    let row = "SELECT id, org_id, provider_email, status FROM mailboxes WHERE source = 'post'";
    assert_eq!((lab.query)(row).await, [format!("{}|default|ann@example.com|connected", ann().key())]);
}

pub async fn a_mailbox_keeps_its_credentials_and_how_it_fares(lab: Lab) {
    let (store, mail) = (&lab.store, "mail".parse().unwrap());
    store.open_mailbox(&ann(), &mail, at(0)).await.unwrap();
    let state = async || store.mailboxes().await.unwrap().remove(0);
    store.set_credentials(&ann(), Some("sealed".into()), at(1)).await.unwrap();
    assert_eq!((state().await.credentials.as_deref(), state().await.updated_at), (Some("sealed"), at(1)));
    let (status, error) = (MailboxStatus::Syncing, None);
    let synced = MailboxNote { status, error, synced_at: Some(at(2)), now: at(2) };
    store.note_mailbox(&ann(), &synced).await.unwrap();
    let failed =
        MailboxNote { status: MailboxStatus::Error, error: Some("refused".into()), synced_at: None, now: at(3) };
    store.note_mailbox(&ann(), &failed).await.unwrap();
    let row = state().await;
    assert_eq!((row.status, row.error.as_deref()), (MailboxStatus::Error, Some("refused")));
    assert_eq!((row.last_synced_at, row.updated_at), (Some(at(2)), at(3)), "the time of the last success stays");
    assert_eq!(row.credentials.as_deref(), Some("sealed"));
    store.note_mailbox(&ann(), &synced).await.unwrap();
    assert_eq!(state().await.error, None);
    store.set_credentials(&ann(), None, at(4)).await.unwrap();
    assert_eq!(state().await.credentials, None);
    (lab.query)("UPDATE mailboxes SET last_history_id = '18446744073709551615'").await;
    assert_eq!(state().await.last_history_id, Some(u64::MAX));
}

pub async fn one_at_a_time_refreshes_a_mailbox(lab: Lab) {
    let (store, mail) = (&lab.store, "mail".parse().unwrap());
    store.open_mailbox(&ann(), &mail, at(0)).await.unwrap();
    let other = MailboxId::new("default", "zoe@example.com");
    store.open_mailbox(&other, &mail, at(0)).await.unwrap();
    assert!(store.lease_refresh(&ann(), at(0), MINUTE).await.unwrap());
    assert!(!store.lease_refresh(&ann(), at(59), MINUTE).await.unwrap());
    assert!(store.lease_refresh(&other, at(59), MINUTE).await.unwrap(), "another mailbox is another's to refresh");
    assert!(store.lease_refresh(&ann(), at(60), MINUTE).await.unwrap(), "the first one is dead by now");
    store.end_refresh(&ann()).await.unwrap();
    assert!(store.lease_refresh(&ann(), at(61), MINUTE).await.unwrap());
}

pub async fn what_is_said_of_an_unknown_mailbox_is_refused(lab: Lab) {
    let store: &dyn MailboxStore = &*lab.store;
    let note = MailboxNote { status: MailboxStatus::Connected, error: None, synced_at: None, now: at(0) };
    let refused = [
        store.set_credentials(&ann(), Some("sealed".into()), at(0)).await,
        store.note_mailbox(&ann(), &note).await,
        store.end_refresh(&ann()).await,
    ];
    assert!(refused.iter().all(|said| said.as_ref().is_err_and(|error| error.kind == ErrorKind::Refused)));
    assert!(!store.lease_refresh(&ann(), at(0), MINUTE).await.unwrap());
    assert_eq!(store.mailboxes().await.unwrap(), []);
}
