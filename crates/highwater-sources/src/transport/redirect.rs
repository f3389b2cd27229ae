//! Where a redirect leads, and whether it may be followed.

use highwater_core::Failure;
use http::{HeaderMap, Method, StatusCode, header, uri::PathAndQuery};

use super::{
    fault,
    origin::{self, Origin},
    pool::Outbound,
    settings::Redirects,
};

pub(super) const MAX: usize = 5;

pub(super) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

pub(super) fn target(
    at: &Origin,
    outbound: &Outbound,
    headers: &HeaderMap,
    allowed: Redirects,
) -> Result<(Origin, PathAndQuery), Failure> {
    if outbound.method != Method::GET && outbound.method != Method::HEAD {
        return Err(fault::redirect("a request that is not a read was redirected"));
    }
    let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let location = location.ok_or_else(|| fault::redirect("a redirect without a readable Location"))?;
    let (to, path) = origin::resolve(at, &outbound.path, location)
        .ok_or_else(|| fault::redirect("a redirect to something that is no URL"))?;
    if allowed == Redirects::SameOrigin && to != *at {
        return Err(fault::redirect("a redirect to another host"));
    }
    if at.is_tls() && !to.is_tls() {
        return Err(fault::redirect("a redirect from TLS to plain text"));
    }
    Ok((to, path))
}

/// What was meant for one origin is not shown to another.
pub(super) fn leave_credentials(outbound: &mut Outbound) {
    outbound.headers.remove(header::AUTHORIZATION);
    outbound.headers.remove(header::COOKIE);
}

pub(super) fn too_many() -> Failure {
    fault::redirect(&format!("more than {MAX} redirects in a row"))
}
