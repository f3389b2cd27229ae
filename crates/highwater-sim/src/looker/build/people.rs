//! Users, groups and roles, and what roles are made of.

use serde_json::{Value, json};

use super::{
    can, count, lately, time,
    words::{person, pick, subject},
};
use crate::{
    looker::{
        instance::{Instance, Tie},
        kind::LookerType,
    },
    rng::SplitMix64,
};

/// Whose credentials clients use: an administrator.
pub(in crate::looker) const ME: &str = "1";

const PERMISSIONS: [&str; 10] = [
    "access_data",
    "clear_cache_refresh",
    "create_alerts",
    "develop",
    "explore",
    "manage_spaces",
    "see_lookml_dashboards",
    "see_looks",
    "see_schedules",
    "see_user_dashboards",
];

impl Instance {
    pub(super) fn people(&mut self, groups: u64, users: u64) {
        (0..5).for_each(|_| drop(self.add_permission_set()));
        (0..4).for_each(|_| drop(self.add_model_set()));
        (0..6).for_each(|_| drop(self.add_role()));
        (0..groups).for_each(|_| drop(self.add_group()));
        self.root_folders();
        (0..users).for_each(|_| drop(self.add_user()));
    }

    pub(super) fn add_permission_set(&mut self) -> String {
        let number = self.number(LookerType::PermissionSets);
        let (name, permissions): (String, Vec<&str>) = match number {
            1 => ("Admin".to_owned(), PERMISSIONS.to_vec()),
            2 => ("Viewer".to_owned(), vec!["access_data", "see_looks", "see_user_dashboards"]),
            _ => (format!("Permission Set {number}"), PERMISSIONS.into_iter().skip(number as usize % 7).collect()),
        };
        let body = json!({
            "can": can(number), "all_access": number == 1, "built_in": number == 1, "id": number.to_string(),
            "name": name, "permissions": permissions, "url": url("permission_sets", number),
        });
        self.add(LookerType::PermissionSets, number.to_string(), &body, Vec::new())
    }

    pub(super) fn add_model_set(&mut self) -> String {
        let number = self.number(LookerType::ModelSets);
        let models: Vec<String> = (0..number % 4).map(|model| format!("model_{}", model + 1)).collect();
        let body = json!({
            "can": can(number), "all_access": number == 1, "built_in": number == 1, "id": number.to_string(),
            "models": models, "name": if number == 1 { "All".to_owned() } else { format!("Models {number}") },
            "url": url("model_sets", number),
        });
        self.add(LookerType::ModelSets, number.to_string(), &body, Vec::new())
    }

    pub(super) fn add_role(&mut self) -> String {
        let number = self.number(LookerType::Roles);
        let mut rng = self.rng(LookerType::Roles, number);
        let first = || ME.to_owned();
        let permissions = if number == 1 { None } else { self.any(LookerType::PermissionSets, &mut rng) };
        let models = if number == 1 { None } else { self.any(LookerType::ModelSets, &mut rng) };
        let (permissions, models) = (permissions.unwrap_or_else(first), models.unwrap_or_else(first));
        let nested = |kind, id: &str| self.find(kind, id).map(|record| Value::Object(record.template.object()));
        let body = json!({
            "can": can(number), "id": number.to_string(),
            "name": if number == 1 { "Admin".to_owned() } else { format!("{} Role {number}", subject(&mut rng)) },
            "permission_set": nested(LookerType::PermissionSets, &permissions), "permission_set_id": permissions,
            "model_set": nested(LookerType::ModelSets, &models), "model_set_id": models,
            "internal": false, "url": url("roles", number), "users_url": format!("{}/users", url("roles", number)),
        });
        self.add(LookerType::Roles, number.to_string(), &body, Vec::new())
    }

    /// The first is that of all users. Every fourth lies in another one.
    pub(super) fn add_group(&mut self) -> String {
        let number = self.number(LookerType::Groups);
        let mut rng = self.rng(LookerType::Groups, number);
        let mut ties: Vec<Tie> = Vec::new();
        if let Some(role) = self.any(LookerType::Roles, &mut rng) {
            ties.push((LookerType::Roles, role));
        }
        if number > 1 && number.is_multiple_of(4) {
            let parent = self.pick(LookerType::Groups, &mut rng, |group| group.id != ME);
            ties.extend(parent.map(|group| (LookerType::Groups, group.id.clone())));
        }
        let external = rng.chance(1, 3).then(|| format!("okta-{number}"));
        let body = json!({
            "can": can(number), "can_add_to_content_metadata": true, "contains_current_user": number == 1,
            "external_group_id": external, "externally_managed": external.is_some(), "id": number.to_string(),
            "include_by_default": number == 1, "user_count": count(&mut rng, 90),
            "name": if number == 1 { "All Users".to_owned() } else { format!("{} Team {number}", subject(&mut rng)) },
        });
        self.add(LookerType::Groups, number.to_string(), &body, ties)
    }

    /// With a folder of their own.
    pub(super) fn add_user(&mut self) -> String {
        let number = self.number(LookerType::Users);
        let mut rng = self.rng(LookerType::Users, number);
        let (first, last) = person(&mut rng);
        let folder = self.add_personal_folder(&format!("{first} {last}"), number);
        let mut ties: Vec<Tie> = vec![(LookerType::Groups, ME.to_owned())];
        let other = self.pick(LookerType::Groups, &mut rng, |group| group.id != ME).map(|group| group.id.clone());
        ties.extend(other.map(|group| (LookerType::Groups, group)));
        let role = if number == 1 { Some(ME.to_owned()) } else { self.any(LookerType::Roles, &mut rng) };
        ties.extend(role.map(|role| (LookerType::Roles, role)));
        let body = self.user(number, (first, last), &folder, &ties, &mut rng);
        self.add(LookerType::Users, number.to_string(), &body, ties)
    }

    fn user(&self, number: u64, name: (&str, &str), folder: &str, ties: &[Tie], rng: &mut SplitMix64) -> Value {
        let (since, disabled) = (self.past(rng), number > 1 && rng.chance(1, 12));
        let (first, last) = name;
        let email = format!("user{number}@example.com");
        let of = |kind| ties.iter().filter(|(known, _)| *known == kind).map(|(_, id)| id.clone()).collect::<Vec<_>>();
        let sessions = json!([{
            "id": (number * 7).to_string(), "ip_address": "192.0.2.7", "browser": "Firefox", "extended_at": lately(since),
            "credentials_type": "email", "created_at": time(since),
        }]);
        json!({
            "can": can(number), "avatar_url": format!("https://gravatar.example/{number}?s=156"),
            "avatar_url_without_sizing": format!("https://gravatar.example/{number}"),
            "credentials_api3": api_keys(number, since), "credentials_email": by_email(number, &email, since, disabled),
            "credentials_embed": [], "credentials_saml": null, "display_name": format!("{first} {last}"), "email": email,
            "embed_group_space_id": null, "first_name": first, "group_ids": of(LookerType::Groups),
            "home_folder_id": "1", "id": number.to_string(), "is_disabled": disabled, "last_name": last,
            "locale": pick(rng, &["en", "de", "ja"]), "looker_versions": ["26.12.8"], "models_dir_validated": null,
            "personal_folder_id": folder, "presumed_looker_employee": false, "role_ids": of(LookerType::Roles),
            "sessions": sessions, "ui_state": { "homepageGroupIdPath": null, "opened": count(rng, 40) },
            "verified_looker_employee": false, "roles_externally_managed": false, "allow_direct_roles": true,
            "allow_normal_group_membership": true, "allow_roles_from_normal_groups": true,
            "is_service_account": false, "url": url("users", number), "x_workspace_tier": pick(rng, &["gold", "silver"]),
        })
    }
}

fn api_keys(number: u64, since: i64) -> Value {
    if number != 1 {
        return json!([]);
    }
    json!([{
        "can": can(number), "id": "1", "client_id": "sim-client", "created_at": time(since), "is_disabled": false,
        "type": "api3", "url": "https://looker.example/api/4.0/users/1/credentials_api3/1",
    }])
}

fn by_email(number: u64, email: &str, since: i64, disabled: bool) -> Value {
    json!({
        "can": can(number), "created_at": time(since), "email": email, "user_id": number.to_string(),
        "forced_password_reset_at_next_login": false, "is_disabled": disabled, "logged_in_at": lately(since),
        "password_reset_url": null, "type": "email", "url": format!("{}/credentials_email", url("users", number)),
        "user_url": url("users", number),
    })
}

fn url(resource: &str, number: u64) -> String {
    format!("https://looker.example/api/4.0/{resource}/{number}")
}
