//! The cases every backend must pass, and the scene they play in. A case is a sentence and an async function; a
//! backend's tests generate one test each with [`store_suite!`](crate::store_suite).

#![expect(clippy::unwrap_used, reason = "a step that fails is a failed case")]

pub mod accounts;
pub mod alerts;
pub mod arrivals;
pub mod content;
pub mod cuts;
pub mod derived;
pub mod exceptions;
pub mod following;
pub mod frontier;
pub mod joining;
pub mod leases;
pub mod mailboxes;
pub mod marks;
pub mod names;
pub mod plans;
pub mod post;
pub mod reports;
pub mod rescans;
pub mod roles;
pub mod rows;
pub mod scene;
pub mod scopes;
pub mod searching;
pub mod sides;
mod tables;
pub mod texts;
pub mod upgraded;
pub mod windows;

pub use scene::{Lab, Scene};
pub use searching::Library;
pub use tables::{ITEMS, USERS, item, mail, user};

macro_rules! cases {
    (($d:tt) $suite:ident $($module:ident: $($name:ident)+;)+) => {
        /// One test for each case: `store_suite!(run)`, where `run` takes a case and gives it a fresh [`Lab`]; those of
        /// `search_suite!` take a [`Library`].
        #[macro_export]
        macro_rules! $suite {
            ($d run:path) => {
                $($(
                    #[test]
                    fn $name() {
                        $d run(|lab| ::std::boxed::Box::pin($crate::suite::$module::$name(lab)));
                    }
                )+)+
            };
        }
    };
}

cases! { ($) search_suite
    searching:
        words_phrases_beginnings_and_fields_are_found_alike
        any_query_is_answered
        what_changed_or_went_is_found_as_it_is_now
        what_is_indexed_is_listed_in_the_order_of_its_keys
        a_text_of_any_size_and_script_is_indexed
        hits_are_bounded_and_the_best_and_latest_go_first
        two_who_index_the_same_do_it_once
        an_index_is_begun_anew
        an_index_that_is_not_there_is_not_made_by_who_only_asks;
    texts:
        checks_are_those_of_the_rows
        texts_come_whole_wherever_they_lie
        large_texts_come_a_few_at_a_time;
}

cases! { ($) store_suite
    accounts:
        a_closed_gate_outlives_the_process
        shares_are_given_back_by_leaving_or_dying
        who_is_at_work_is_listed_with_what_it_holds
        a_run_ends_once;
    content:
        what_moves_without_meaning_is_written_and_no_version
        fields_are_read_of_what_has_some_whatever_stands_beside_it
        when_a_row_was_last_fetched_is_told_beside_its_columns
        the_requests_of_runs_are_counted_also_of_those_that_never_ended
        what_runs_download_is_kept_by_the_hour_and_counted_once;
    leases:
        a_late_commit_is_fenced_off
        a_silent_segment_is_taken_over_after_its_ttl
        a_released_segment_keeps_what_is_committed
        rows_are_counted_once_whether_their_segment_is_at_work_or_not
        due_retries_go_first_then_the_abandoned_then_the_lowest
        neither_what_is_new_nor_what_is_looked_at_again_waits_for_the_other
        only_what_is_due_is_handed_out;
    plans:
        segments_tile_at_every_chunk
        an_origin_sinks_and_takes_the_frontier_along
        a_plan_laid_twice_is_laid_once
        what_is_bare_is_one_segment
        a_plan_that_leaves_a_gap_is_refused
        fifty_million_ids_are_cut_quickly;
    frontier:
        the_frontier_crosses_only_a_gap_free_prefix
        segments_closed_at_once_are_judged_each_by_itself
        dead_letters_hold_the_frontier_or_are_passed
        a_rescan_never_moves_the_frontier
        a_rescan_heals_a_held_segment
        what_a_rescan_left_open_holds_the_frontier
        a_failed_second_look_does_not_undo_a_confirmed_absence
        a_segment_that_does_not_add_up_is_not_sealed;
    rows:
        a_changed_body_is_kept_as_a_version
        the_order_of_edges_is_no_version
        edges_that_are_gone_are_gone
        an_edge_named_twice_counts_once
        an_edge_that_outlived_its_row_is_no_obstacle
        an_object_that_comes_twice_in_one_commit_is_one_row
        a_row_of_another_width_than_its_table_is_refused
        the_same_commit_twice_changes_nothing
        a_commit_broken_off_is_whole_or_absent
        an_absence_leaves_the_stored_body_alone
        any_text_comes_back_as_it_went_in
        json_comes_back_in_its_one_spelling
        a_large_value_comes_back_whole
        rows_with_names_for_keys_are_rows_too
        a_refused_row_takes_nothing_else_down
        a_damaged_row_is_noticed_and_repaired
        the_last_content_outlives_its_item;
    exceptions:
        an_exception_lives_from_the_first_try_to_the_last
        a_time_that_a_wrong_clock_set_is_not_waited_for
        dead_letters_come_back_to_life
        a_passed_dead_letter_is_replayed_behind_the_frontier
        the_outlook_tells_retries_from_the_unpublished;
    reports:
        pages_join_to_the_whole
        known_keys_are_told_by_range_and_by_name
        the_ledger_holds_after_everything
        a_run_is_measured
        the_database_finds_itself_sound;
    arrivals:
        an_answer_that_took_long_does_not_undo_what_the_feed_told
        an_answer_to_the_feed_that_took_long_does_not_undo_what_came_meanwhile
        a_row_from_the_future_outruns_nothing
        a_body_that_is_no_longer_there_cannot_be_confirmed
        what_is_behind_stays_unsettled_and_holds_the_cursor
        what_came_in_beside_something_behind_is_counted
        the_feed_stores_rows_outside_segments
        a_row_of_the_feed_ends_the_exception_of_its_key
        what_policy_keeps_out_stays_out
        a_confirmed_body_moves_only_its_time
        the_ages_of_changes_are_counted_once
        a_story_is_told_from_its_first_score_to_its_last;
    marks:
        a_mark_stands_for_the_body_in_its_row
        marks_are_told_by_range_and_by_name;
    roles:
        a_role_is_one_process_s_until_it_falls_silent
        who_does_not_listen_writes_nothing_about_the_feed
        what_was_told_is_kept_for_whoever_listens_next
        what_was_heard_is_never_unheard;
    windows:
        a_window_opens_once_and_ends_once
        a_window_closes_only_when_all_of_it_was_looked_at_again
        a_pass_that_nobody_has_begun_serves_the_next_window_as_well
        a_window_does_not_wait_for_a_catch_up_behind_its_pass
        a_window_over_nothing_needs_no_pass;
    rescans:
        a_pass_counts_what_it_saw_and_leaves_no_segments
        what_is_brought_twice_is_seen_once
        a_claim_of_what_is_new_leaves_a_pass_alone
        a_pass_over_one_key_is_laid_once_and_leaves_nothing
        a_pass_that_is_asked_for_twice_is_laid_once
        a_long_pass_is_laid_in_chunks_and_goes_on_where_it_broke_off
        an_absence_outlives_the_segment_that_found_it
        a_dead_letter_keeps_its_segment_and_ends_the_pass;
    joining:
        small_segments_become_one
        what_is_at_work_or_before_the_frontier_is_not_joined
        many_small_segments_are_joined_call_by_call;
    names:
        names_are_listed_in_the_order_in_which_they_are_found
        a_list_grows_by_rows_that_were_not_looked_at
        the_names_of_a_span_are_told_once;
    alerts:
        an_alert_is_told_once_until_it_is_resolved
        an_alert_that_goes_on_says_what_holds_now_and_when_it_was_told
        a_store_knows_its_size_and_its_age;
    mailboxes:
        a_mailbox_is_made_once_and_told_of
        a_mailbox_keeps_its_credentials_and_how_it_fares
        one_at_a_time_refreshes_a_mailbox
        what_is_said_of_an_unknown_mailbox_is_refused;
    scopes:
        mailboxes_with_the_same_ids_see_their_own_rows
        the_rows_of_a_mailbox_are_counted_alone
        what_is_said_of_a_message_is_not_said_of_its_namesake;
    sides:
        bytes_come_back_as_they_went_in
        what_belongs_to_an_object_is_stored_once_and_restored
        what_is_not_believed_brings_nothing_along
        an_object_is_noted_once_however_often_it_comes;
    derived:
        a_thread_follows_its_messages
        a_message_of_no_thread_is_of_none
        a_thread_that_its_messages_do_not_make_is_found_and_made_anew
        a_row_that_was_edited_is_told_apart_from_one_that_was_not
        an_edit_does_not_make_damage_sound;
    following:
        a_record_is_followed_from_the_first_mark
        what_was_told_changes_rows_and_what_is_derived
        what_is_told_of_and_not_stored_is_fetched_at_once
        what_is_told_again_comes_back_unless_it_is_tried_or_given_up
        what_is_told_while_it_is_tried_is_tried_again
        news_of_years_take_few_segments
        the_place_in_the_record_moves_with_the_last_piece;
    cuts:
        a_segment_cut_in_two_is_passed_half_by_half
        who_has_lost_a_segment_does_not_cut_it
        both_halves_belong_to_the_pass;
}
