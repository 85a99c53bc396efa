"""Home sayings: how people at home speak about the weather, ways, dates, letters, papers and what to remember.

Written as the table of sayings is. A `*` stands for the few words that people put in between: `let_*_know`.
"""

from __future__ import annotations

HOME_SAYINGS: tuple[tuple[str, str], ...] = (
    # Weather
    ("jumper pullover cardigan woollies thermals long_sleeves short_sleeves shorts brolly flip_flops sandals"
     " washing_line on_the_line washing_outside washing_out laundry_out dry_outside drizzling pouring bucketing"
     " miserable_outside miserable_over miserable_there nasty_outside nice_outside lovely_outside horrible_outside"
     " grey_outside over_there_like like_over_there blue_sky blue_skies skies sunbathing heat_wave cold_snap"
     " garden_party open_air outside_or_inside inside_or_outside eat_outside sit_outside play_outside"
     " paint_the_fence wash_my_car bike_ride balloon_ride boat_trip day_trip sandcastle snowball ice_skating"
     " frostbite sunstroke thermometer barometer minus_degrees below_zero below_freezing above_zero sleeveless",
     "weather|forecast|temperature"),
    ("next_weekend_nice weekend_be_like weekend_look stay_fine stay_nice stay_like_this keep_up_like_this turn_nasty"
     " clear_up brighten_up cool_down warm_up hold_until weather_hold going_to_rain going_to_snow likely_to_rain"
     " chance_of_rain chance_of dry_weekend plan_for_rain bad_weather good_weather nice_weather",
     "forecast|weather temperature"),
    ("nasty_brewing brewing weatherwise stay_indoors stay_inside board_up batten evacuating sandbags storm_coming"
     " coming_our_way heading_our_way safe_to_go_out safe_to_travel take_shelter red_alert emergency_services"
     " dangerous_weather worry_about_the_storm storm_warning flood_warning on_alert",
     "alert|warning|weather severe"),
    ("healthy_to_go_running healthy_to_run healthy_to_go_out healthy_outside safe_to_breathe safe_to_run stuffy"
     " clean_air how_clean how_dirty_is air_out air_the_room keep_the_windows windows_shut windows_open burning_eyes"
     " cough_outside sensitive_lungs jogging_outside go_running go_jogging outdoor_sport",
     "air|pollution|weather quality"),
    # Places and ways
    ("starving peckish famished bite_to_eat grab_lunch grab_a_bite nice_meal birthday_meal meal food thai_food"
     " indian_food chinese_food italian_food mexican_food seafood sandwich coffee_shop tea_room beer_garden pint"
     " place_to_stay place_to_eat place_to_sit place_to_swim place_to_park somewhere_decent somewhere_quiet"
     " somewhere_cheap somewhere_cosy somewhere_good somewhere_for get_a_coffee get_my_shoes get_a_haircut get_a_key"
     " repaired_near cobbler tailor dry_cleaner bike_shop shoe_shop pet_shop garden_centre walk_in_clinic"
     " kindergarten nursery cemetery farmers_market flea_market market_hall ice_rink climbing_wall around_the_corner"
     " round_the_corner close_to_the close_to_my near_my near_our around_my round_my in_this_town in_the_centre"
     " local_shops anywhere_to anywhere_good what_is_close what_is_near what_is_around",
     "place|restaurant|venue|shop search"),
    ("until_what_time till_what_time still_let still_let_you let_you_in let_us_in doors_open doors_close last_orders"
     " last_admission admission open_already open_yet open_tomorrow open_at_the_weekend open_on open_at_night"
     " closed_on shut_at shuts closes_at does_it_shut does_it_open pick_up_before is_it_any_good is_it_worth"
     " what_do_people_think well_rated wheelchair number_of_the_shop ring_the_shop",
     "place|hour|detail open phone"),
    ("without_a_car without_my_car without_driving change_trains change_buses which_bus which_train which_tram"
     " which_line which_way on_my_bike on_a_bike on_public best_way_home way_there way_back way_round get_us_from"
     " get_me_from get_us_to get_me_home get_us_home find_my_way find_our_way turn_by_turn how_do_we_get"
     " how_do_you_get how_does_one_get how_would_i_get how_will_i_get walk_there drive_there cycle_there set_off"
     " leave_the_house take_me_there guide_me lead_me tram_stop bus_stop",
     "direction|route transport"),
    ("how_long_will_it_take how_long_would_it how_long_do_i how_long_does_the how_far_apart how_far_away how_far_is"
     " quickest_to_reach fastest_to_reach which_is_closest which_is_nearest which_is_nearer nearer_to closer_to"
     " which_one_is_nearest from_each to_each between_each between_all as_the_crow travelling_time driving_time"
     " walking_distance walking_time long_drive long_walk long_way",
     "distance|direction|route travel time"),
    ("how_high_is how_high_does how_high_are how_high_do ears_pop thin_air up_in_the_mountains top_of_the_mountain"
     " above_the_sea height_of mountain_pass metres_up feet_up highest_point lowest_point flood_plain treeline"
     " steepness ascent descent",
     "elevation|altitude"),
    ("in_bed still_up still_awake already_asleep sleeping_now be_awake up_already get_them_out_of_bed wake_up_the"
     " would_i_wake too_late_to_ring too_early_to_ring ring_them_now call_them_now call_over_there time_over_there"
     " middle_of_the_night hour_is_it hours_difference clock_there clocks_go clocks_change office_open_there"
     " time_now_in time_in",
     "zone|clock|time local"),
    ("on_the_globe on_a_map on_earth_is which_spot exact_spot exact_position pin_down satnav latitude_of"
     " longitude_of position_of_the numbers_for_the_map where_exactly_is sits_on",
     "coordinate|geocode|location|address"),
    ("whose_street which_road what_road which_house what_house what_place_is which_town what_town which_village"
     " where_am_i where_are_we standing_at these_numbers_on_the_map this_position this_point found_at landed_at",
     "address|geocode|reverse coordinate"),
    # Dates
    ("anything_planned got_planned in_store_for_me in_store what_is_in_store have_i_got_on got_on what_am_i_up_to"
     " what_am_i_doing am_i_expected expected_anywhere need_to_be_anywhere supposed_to_be what_is_next"
     " what_comes_next what_is_waiting first_thing_on free_evening free_afternoon free_morning do_i_have_time"
     " have_i_got_time am_i_available how_full_is how_busy_is how_busy_am my_next my_monday my_tuesday my_wednesday"
     " my_thursday my_friday my_weekend on_the_agenda on_my_plate_on when_is_the when_does_the what_day_is"
     " when_was_the_last clashes_with anything_else_on",
     "event|calendar list"),
    ("squeeze_*_in slot_*_in fit_*_in pencil_*_in put_*_in_my_diary put_*_in_my_calendar put_*_in_the_calendar"
     " put_*_in_the_diary put_*_on_my_calendar put_*_on_the_calendar add_*_to_my_calendar add_*_to_the_calendar"
     " note_*_in_my_diary keep_*_free block_*_for reserve_*_for half_an_hour_with an_hour_with a_chat_with"
     " coffee_with dinner_with breakfast_with drinks_with tea_with a_walk_with time_with get_together_with"
     " see_somebody_on meet_somebody_on meet_somebody_at meeting_somebody i_am_seeing i_am_meeting we_are_meeting"
     " leaving_do stag hen_night baby_shower bonfire quiz_night school_play sports_day open_day guided_tour"
     " vet_appointment eye_test driving_test piano_lesson",
     "event|calendar|meeting create"),
    ("push_*_back push_*_to put_*_off put_*_back bring_*_forward move_*_to shift_*_to shift_me_to moved_me_to"
     " moved_us_to make_it_later make_it_earlier make_it_longer make_it_shorter start_*_later start_*_earlier"
     " a_day_later a_week_later by_a_day by_an_hour by_a_week an_hour_later to_another_day to_another_time"
     " running_late running_behind had_to_shift had_to_move has_been_moved is_now_at is_now_on takes_place_at"
     " somewhere_else_instead in_a_different_room overruns",
     "event|meeting|appointment update"),
    ("call_*_off take_*_off_my drop_the not_happening_after after_all off_my_schedule off_my_calendar off_my_diary"
     " out_of_my_diary out_of_my_calendar will_not_take_place does_not_take_place no_longer_on is_cancelled"
     " got_cancelled has_been_cancelled dropping_the nobody_is_coming scratch_the",
     "event|meeting|appointment delete cancel"),
    ("when_could when_could_we when_could_somebody when_can_we when_can_somebody when_might_we sit_together"
     " get_everyone get_everybody find_an_hour find_half_an_hour an_hour_when a_day_when a_time_when time_that_works"
     " works_for_all works_for_us works_for_both nothing_on all_have_time everybody_can all_of_us_can all_five"
     " all_four the_four_of_us the_three_of_us the_two_of_us the_five_of_us all_around_a_table suits_everybody"
     " suits_everyone suits_all time_for_all_of bring_*_together",
     "slot|free|busy|availability attendee find"),
    ("count_me count_us_in i_will_be_there we_will_be_there we_will_come i_am_coming we_are_coming i_would_love_to"
     " i_can_not_come i_can_not_make can_not_make_it will_not_make_it not_make_it will_not_be_there can_not_be_there"
     " not_be_able_to_come not_able_to_come not_attend not_be_joining unfortunately_i_can say_yes_to_the_party"
     " say_no_to_the turn_*_down turn_the_invitation i_might_come not_sure_if_i_can accept_the_invitation"
     " accept_the_invite bow_out_of",
     "invitation|invite|event respond accept decline"),
    ("nobody_should_expect do_not_expect_me expect_me_at not_at_work not_in_work not_be_at_work not_be_in"
     " will_not_be_working i_am_skiing i_am_sailing i_am_travelling i_am_hiking i_am_on_a_cruise lying_on_the_beach"
     " at_the_seaside at_the_beach off_on_holiday off_to go_away going_away going_on_holiday going_on_vacation"
     " on_parental on_maternity on_paternity on_sick in_hospital_from operation_on having_surgery taking_the_week"
     " taking_friday take_*_off having_*_off week_off weeks_off afternoon_off back_on_monday unreachable_from"
     " switched_off_from not_answering",
     "office|absence|vacation|leave out"),
    ("who_else_is_going who_else_will who_is_going_to_be who_all_is which_room where_is_it_held where_are_we_meeting"
     " where_do_we_meet what_time_is_the what_time_does_the who_invited who_is_joining who_has_accepted who_said_yes"
     " link_to_the_call how_do_i_join how_do_i_dial",
     "event|attendee|location get meeting"),
    # Letters
    ("got_back_to_me get_back_to_me come_back_to_me came_back_to_me been_in_touch got_in_touch"
     " has_somebody_been_in_touch any_word word_from any_sign_of anything_new_from something_from in_the_post"
     " has_the_bank has_the_school has_the_landlord has_the_agency arrived_from arrived_yet come_in_from came_from"
     " what_did_*_want what_does_*_want want_from_me wants_from_me what_did_somebody_want what_does_somebody_want"
     " did_somebody_ever_send did_somebody_ever was_there_a has_somebody_sent has_somebody_answered"
     " has_somebody_confirmed did_somebody_confirm did_somebody_send order_confirmation tracking_mail"
     " delivery_notice travel_documents itinerary_from quote_from offer_from invoice_from bill_from letter_from"
     " note_from heard_anything heard_back",
     "message|email|mail search inbox"),
    ("say_in_his say_in_her say_in_their last_letter latest_letter his_letter her_letter their_letter his_last"
     " her_last his_mail her_mail her_email his_email what_did_somebody_say what_did_somebody_write"
     " what_does_somebody_write what_does_somebody_say word_for_word the_whole_letter read_me_what read_what"
     " show_me_what",
     "message|email|mail read content"),
    ("let_*_know in_writing drop_*_a_line drop_*_a_note send_*_a_line send_*_a_note send_*_a_message send_*_an_email"
     " send_*_my write_*_that write_*_a_letter write_*_an_email write_to tell_*_that tell_*_by_mail inform_*_that"
     " ask_*_if ask_*_whether ask_*_for ask_*_when thank_*_for wish_*_a wish_*_all remind_*_that remind_*_to"
     " apologise_to apologize_to complain_to congratulate_*_on give_notice hand_in_my_notice cancel_by_letter",
     "message|email|mail send post"),
    ("hold_*_back hold_it_back looked_over_it look_over_it read_over_it sleep_on_it not_send_it_yet not_send_yet"
     " do_not_send not_be_sent not_go_out_yet leave_it_unsent start_a_letter start_a_mail start_a_note_to"
     " start_writing begin_a_letter half_finished word_something get_*_ready_to_send have_*_ready for_me_to_check"
     " for_me_to_send before_sending until_i_have_looked",
     "draft|email|message create save"),
    ("say_yes_to_somebody say_no_to_somebody say_thanks tell_*_yes tell_*_no get_back_to answer_*_that reply_*_that"
     " respond_*_that thank_her thank_him thank_them question_from his_question her_question s_question s_mail"
     " s_email s_letter agree_to_his agree_to_her send_an_answer give_*_an_answer",
     "reply|respond message email"),
    ("let_*_have let_*_have_it pass_*_on pass_*_on_to pass_*_along hand_*_on send_*_on send_*_along show_*_to"
     " should_see should_see_what should_also_see should_also_get should_get_a_copy needs_to_see must_see_this"
     " see_it_too have_it_too get_it_too a_copy_to wants_to_see_the would_like_to_see_what",
     "forward message email"),
    ("what_somebody_enclosed enclosed_on put_*_on_my_computer put_*_on_my_desktop onto_my_computer on_to_my_computer"
     " onto_my_laptop on_my_desktop onto_my_desktop from_his_mail from_her_mail out_of_the_mail out_of_the_email"
     " out_of_his_mail out_of_her_mail pictures_from_the_mail hanging_on tickets_from_the_mail save_*_from_the_mail"
     " the_form_they_sent the_pictures_they the_photos_he the_photos_she",
     "attachment|download message"),
    ("by_itself by_themselves on_their_own from_now_on_all should_vanish should_disappear straight_into_the_bin"
     " straight_in_the_bin straight_to_the_bin every_time_somebody every_time_i_get whenever_something"
     " whenever_i_get whenever_there anything_from_the should_always always_be should_never never_again_see"
     " keep_*_out_of_my_inbox off_my_inbox sick_of_the sick_of_these fed_up stop_bothering stop_sending stop_these"
     " pestering flooding_my clutter cluttering",
     "filter|rule|incoming message"),
    ("stands_out stand_out treat_*_as treat_it_as dealt_with put_*_in_the_pile to_read_later come_back_to_it"
     " not_read_yet have_read_it already_read mark_*_as mark_*_unread file_*_under file_*_away set_*_aside"
     " make_it_stand highlight_the_mail as_urgent as_private as_work into_the_work_pile",
     "label|tag|message modify"),
    ("bin_that bin_the chuck_*_out throw_*_away throw_*_out chain_letter away_with in_the_bin into_the_bin"
     " in_the_trash into_the_rubbish rubbish do_not_want_to_see never_want_to_see",
     "delete|trash|remove message"),
    # Papers
    ("what_is_in_the what_is_in_my what_stands_in_the what_did_i_put what_did_i_write what_have_i_written"
     " what_did_i_note on_the_shopping_list on_my_list on_the_list my_list my_notes my_essay my_diary_of my_poem"
     " my_letter my_speech my_novel last_page first_page page_of_my how_does_my_letter how_does_it_begin"
     " how_does_it_end begins_with_the_words what_stands_in what_is_written_in let_me_read show_me_my read_me_my"
     " what_do_my_notes minutes_of",
     "file|text|content|document read"),
    ("keep_this_recipe keep_it_on_my keep_*_on_my_computer keep_*_on_my_laptop keep_*_as_a put_*_in_a_file"
     " put_*_into_a_file save_*_as save_*_in save_*_to write_*_down note_*_down jot_*_down type_*_up put_*_on_paper"
     " store_*_as store_*_in write_*_into_a leave_*_on_my_computer put_*_on_record",
     "file|document|content write"),
    ("put_it_right put_*_right got_*_wrong spelled_*_wrong spelt_*_wrong spelled_wrong spelt_wrong wrong_name"
     " wrong_date wrong_number slipped_in slip_in swap_*_for replace_*_with replace_*_by change_*_to all_over_the"
     " take_out_the_part leave_out_the cross_*_out strike_*_out cross_*_off cut_the_last rewrite_the_first"
     " add_a_sentence add_a_paragraph in_the_second_line last_sentence first_sentence",
     "edit|file text line"),
    ("lying_around lying_around_in what_is_in_my what_is_in_the have_i_got_stored what_have_i_stored"
     " what_is_on_my_desktop what_is_on_my_stick everything_in_my in_downloads in_my_documents in_the_documents"
     " what_all_is_in look_in_my look_inside_my rummage cupboard drawer",
     "directory|folder|file list"),
    ("where_on_earth where_did_i_leave where_have_i_put where_has where_could where_might i_put_my"
     " can_not_remember_where do_not_know_where find_the_one find_*_named find_*_called must_be_somewhere"
     " used_to_have had_a_file agreement rental_agreement lease_agreement certificate_of tax_papers"
     " birth_certificate warranty instructions_for",
     "file|search|document find name"),
    ("in_their_own_place in_its_own_place into_its_own put_*_in_order put_*_into_the_folder put_*_in_the_folder"
     " put_*_with_the put_*_elsewhere tidy_*_away tidy_*_up sort_*_into move_*_into move_*_over call_*_instead"
     " call_that call_that_file name_*_differently rename_*_to goes_into_the belongs_in_the belongs_into"
     " from_my_desktop off_my_desktop",
     "move|rename|directory file"),
    ("fresh_place place_to_keep place_for_my place_for_the somewhere_to_keep somewhere_for_my_files fresh_folder"
     " empty_folder own_folder extra_folder",
     "directory|folder create"),
    ("how_heavy fit_on_my fit_on_a fits_on_my on_my_stick usb_stick too_big too_big_to how_much_room when_did_i"
     " last_touch last_touched last_opened last_worked_on when_did_i_start how_new_is how_recent newest_version"
     " may_others_read can_others_open",
     "file|size|info time"),
    ("parts_of_my_computer able_to_look able_to_see able_to_read able_to_open allowed_to_look let_you_see"
     " where_may_you where_can_you which_places_can how_much_can_you_see off_limits out_of_bounds reach_into snoop",
     "allowed|access|directory list"),
    ("big_picture bird_s_eye_view laid_out_in how_is_*_laid_out how_*_is_laid_out how_is_*_organised"
     " how_is_*_organized what_is_where with_everything_in all_levels family_tree_of_folders nested_inside",
     "tree|directory|recursive"),
    # What to remember
    ("keep_*_in_mind bear_*_in_mind keep_in_mind_that never_forget_that do_not_forget remember_this"
     " make_sure_you_know make_sure_you_remember you_need_to_know by_the_way in_case_i_forget lest_i_forget"
     " can_not_have can_not_eat can_not_stand must_not_eat does_not_eat does_not_drink does_not_like is_afraid_of"
     " is_fond_of is_crazy_about is_keen is_scared_of takes_sugar shoe_size is_left_handed grew_up studied_at"
     " moved_house has_moved_to adopted_a speaks_fluent is_called turned_forty turned_thirty turned_fifty"
     " is_expecting just_had_a_baby passed_away has_passed_away",
     "observation|memory|knowledge|entity add"),
    ("in_my_life new_in_my_life new_doctor new_dentist new_boss new_girlfriend new_boyfriend new_partner"
     " new_flatmate new_teacher new_dog new_cat new_team_member i_got_to_know i_have_met i_just_met let_me_introduce"
     " let_me_tell_you_about this_is_my is_my_new has_joined_our_family",
     "entity|knowledge|memory create"),
    ("a_couple are_a_couple in_love together_now are_together is_together_with going_out_with goes_out_with engaged"
     " got_engaged are_engaged twins are_twins are_siblings are_friends are_brothers are_sisters are_related"
     " is_related is_married_to is_the_son is_the_daughter is_the_child is_the_uncle is_the_aunt is_the_neighbour"
     " is_the_teacher is_the_owner is_the_boss works_for_the is_working_for studies_with shares_a_flat lives_with"
     " is_in_charge answers_to has_to_do_with go_to_school_with sits_next",
     "relation|relationship|entity create"),
    ("not_working_for not_work_for no_longer_work no_longer_live no_longer_lives no_longer_likes no_longer_has"
     " not_a_couple not_married not_live_there does_not_live stopped_working_for left_his left_her are_divorced"
     " have_separated are_no_longer not_friends fallen_out parted_ways gave_up_his gave_up_her used_to_be",
     "relation|relationship|observation delete"),
    ("need_not_remember need_not_know not_need_to_remember no_need_to_remember stop_remembering"
     " get_*_out_of_your_head out_of_your_head wipe_everything erase_what delete_everything_you drop_everything_you"
     " you_may_forget forget_all never_mind_what take_back_what i_take_that_back not_true_that",
     "memory|entity|observation|knowledge delete"),
    ("what_was_it_again was_it_again what_was_the_name what_was_his_name what_was_her_name told_you_about i_told_you"
     " i_once_told told_you_once do_you_know_anything do_you_know_who do_you_know_what do_you_recall"
     " have_i_mentioned have_i_ever_told did_i_ever_tell did_i_mention remember_what remember_when who_was_it_again"
     " what_did_i_say refresh_my_memory help_me_remember tip_of_my_tongue what_does_somebody_like"
     " what_is_somebody_allergic",
     "knowledge|memory|node|graph search open"),
    ("picked_up_about everything_you_have_learned everything_about_me all_about_me know_about_me know_about_us"
     " learned_about_me remember_about_me stored_about_me everything_i_have_told all_i_have_told"
     " everything_i_ever_told so_far_about",
     "graph|knowledge|memory read search"),
    # Said of anybody and anything
    ("is_*_open does_*_open does_*_close when_does_*_open when_does_*_close how_late_is_*_open is_*_still_open",
     "place|hour|detail open"),
    ("how_far_is_*_from how_long_is_*_from how_long_from how_far_from", "distance|direction|route travel time"),
    ("when_is_*_free when_are_*_free are_*_free when_do_*_have_time does_*_have_time are_both_free is_everyone_free",
     "slot|free|busy|availability attendee find"),
    ("other_plans something_else_on love_to_come happy_to_come glad_to_come like_to_come pleased_to_come"
     " can_not_attend have_to_miss afraid_i_can afraid_we_can",
     "invitation|invite|event respond accept decline"),
    ("let_me_miss do_not_let_me_miss not_let_me_forget do_not_let_me_forget do_not_want_to_miss must_not_miss due_at"
     " due_on_the cancel_*_appointment cancel_*_meeting",
     "event|calendar|appointment|meeting"),
    ("did_*_send did_*_ever_send has_*_sent has_*_written has_*_replied has_*_answered has_*_confirmed did_*_confirm"
     " did_*_write did_*_answer did_*_reply did_*_get_back has_*_got_back have_*_got_back have_*_written"
     " have_*_replied have_*_answered have_*_sent estimate quotation written_confirmation",
     "message|email|mail search"),
    ("put_*_down_in put_*_down_on older_than newer_than how_old_is_*_file find_*_document find_*_file find_*_letter"
     " where_is_*_file where_is_*_document where_is_*_letter where_are_*_papers delete_*_file",
     "file|document|info search write"),
    ("is_*_boss is_*_brother is_*_sister is_*_mother is_*_father is_*_son is_*_daughter is_*_wife is_*_husband"
     " is_*_friend is_*_teacher is_*_neighbour is_*_cousin is_*_aunt is_*_uncle is_*_girlfriend is_*_boyfriend"
     " is_*_colleague is_*_grandmother is_*_grandfather",
     "relation|relationship|entity create"),
    ("keep_that_in keep_*_in_your_head in_your_head in_your_memory from_your_memory store_in_your_memory",
     "memory|observation|knowledge|entity add"),
)  # fmt: skip
