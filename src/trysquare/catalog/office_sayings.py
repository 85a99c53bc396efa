"""Office sayings: how people at work speak about data, programs, pages, money, teams and the machines behind them.

Written as the table of sayings is. A `*` stands for the few words that people put in between: `hand_*_in`.
"""

from __future__ import annotations

OFFICE_SAYINGS: tuple[tuple[str, str], ...] = (
    # Data
    ("brought_in_the_most brings_in sold_best sold_most sold_the_most sells_best who_ordered who_bought"
     " who_has_ordered who_has_bought have_ordered have_bought ordered_more ordered_last bought_something"
     " spend_on_average spends_the_most how_many_*_did how_many_*_do_we how_many_*_have_we how_many_*_were"
     " how_much_*_did_we how_many_joined how_many_people_joined how_many_have how_many_did how_many_do_we"
     " how_many_were how_many_are_there how_many_of_our how_many_bought how_many_came how_many_left compared_to"
     " compared_with than_last_year than_last_month as_last_year year_on_year month_by_month from_month_to"
     " biggest_customer biggest_customers best_customers best_month worst_month our_numbers our_figures in_numbers"
     " share_of_our what_share which_region which_country which_city which_product which_products which_customers"
     " which_shop which_branch_sold oldest_customer youngest age_group in_our_records in_our_data in_our_system"
     " on_file on_our_books from_our_records number_of_orders number_of_customers number_of_users number_of_members"
     " add_up_all crunch_the_numbers work_out_the_average",
     "query|database|sql|row select"),
    ("should_get_the_new should_all_get should_all_have in_our_customer_data all_our_customers everyone_who_lives"
     " everybody_who_lives everyone_who_has everybody_who_has put_up_all raise_*_by ten_percent_more"
     " for_good_from_our wipe_the_old throw_out_the_old_records remove_duplicates double_entries wrong_in_our_data"
     " correct_our_records change_*_in_the_database change_*_in_our_records put_*_in_the_database"
     " put_*_into_the_database enter_*_into_the_database moved_so_change",
     "statement|sql|database|table execute"),
    ("what_do_we_actually we_save_about kept_on kept_about do_we_collect data_do_we what_details details_are_kept"
     " details_do_we kind_of_details kinds_of_details what_information what_is_recorded what_do_we_record"
     " what_do_we_note recorded_for_each stored_for_each kept_for_each about_each_order about_each_customer"
     " information_on_each",
     "table|column|schema|describe list"),
    ("takes_an_eternity take_an_eternity an_eternity taking_so_long taking_forever why_does_it_take_so why_so_slow"
     " why_is_it_so drag_on gets_stuck snail sluggish_report wait_so_long waiting_so_long have_to_wait grind slow_as",
     "query|slow|explain plan"),
    ("snappier snappy speed_*_up make_*_faster make_*_quicker get_*_faster run_*_faster less_waiting answer_quicker"
     " faster_searches could_we_do_to_speed quicken",
     "index|speed|performance suggest"),
    ("hogging busy_all_day keeps_*_busy keeping_*_busy weighing_down takes_the_longest taking_the_longest"
     " most_expensive_queries eating_all eats_up what_is_slowing culprits",
     "slow|query|database list"),
    ("in_a_safe_place to_a_safe_place put_*_in_a_safe somewhere_safe spare_copy second_copy not_lose_anything"
     " not_lose_any not_lose_our lose_everything loses_everything if_the_server_dies if_something_goes_wrong"
     " in_case_something just_in_case before_we_touch before_we_change before_the_update before_the_move"
     " copy_everything keep_a_copy_of_everything rescue_copy",
     "backup|dump|database"),
    ("coping_with cope_with hold_up holding_up under_pressure out_of_breath near_the_limit is_everything_alright"
     " everything_alright everything_all_right doing_well doing_all_right how_is_*_doing how_are_*_doing"
     " running_smoothly run_smoothly on_its_knees struggling still_alive is_it_well",
     "health|status|database check"),
    # Programs
    ("does_nothing do_nothing nothing_happens stays_empty stay_empty stays_blank is_empty_since keeps_freezing"
     " keeps_hanging keeps_stopping gives_an_error gives_wrong shows_wrong shows_the_wrong shows_an_error"
     " throws_an_error users_moan customers_moan people_moan people_complain customers_complain moan moaning"
     " grumble_about_the_app write_that_up write_*_up somebody_should_look somebody_should_fix somebody_needs_to_fix"
     " should_be_looked needs_looking needs_repairing needs_fixing_in it_would_be_good if_the_app if_the_program"
     " would_be_handy would_be_useful idea_for_the_app suggestion_for_the report_*_to_the_developers"
     " tell_the_developers tell_the_programmers let_the_developers_know wish_list_for stopped_responding"
     " does_not_react does_not_work_any does_not_start does_not_save will_not_start will_not_save will_not_print"
     " looks_broken out_of_place overlaps_the cut_off_on unreadable_on on_my_phone_the",
     "issue|bug|ticket create"),
    ("what_is_still_broken what_is_broken still_not_working what_is_left what_is_left_to what_remains"
     " what_still_needs what_do_we_still_have what_have_we_got_to_fix known_faults open_tasks open_points open_items"
     " to_dos list_of_bugs list_of_problems what_problems which_problems which_bugs which_faults",
     "issue|bug|ticket list"),
    ("is_history tick_*_off tick_it_off off_the_list is_sorted got_sorted got_fixed has_been_sorted has_been_dealt"
     " is_dealt_with no_longer_happens does_not_happen_any can_close can_shut give_*_to_somebody_to_fix"
     " should_take_over should_take_care_of_the_bug make_*_urgent more_urgent less_urgent high_priority top_priority"
     " put_somebody_on is_back_again came_back_again",
     "issue|bug|ticket|state update"),
    ("run_into_the run_into_this ran_into has_anyone_else has_anybody_else anyone_else_run anybody_else_have"
     " anyone_else_seen had_this_before had_that_before seen_this_before seen_that_before am_i_the_first"
     " the_only_one_with come_up_before known_already is_it_known heard_of_this_problem others_with_this",
     "issue|bug|search"),
    ("what_is_number number_*_all_about what_is_that_bug what_is_that_ticket who_reported who_is_looking_after_bug"
     " details_of_bug details_of_ticket what_happened_to_bug state_of_bug state_of_ticket",
     "issue|ticket|bug get detail number"),
    ("leave_a_few_words leave_*_under a_few_words_under write_*_under add_*_under say_*_under note_*_under"
     " tell_*_in_the_ticket respond_in_the_ticket under_that_bug to_the_bug_report in_the_bug_report",
     "comment|issue add"),
    ("before_it_goes_in before_it_goes_live look_over_my look_at_my_code look_at_my_work look_at_my_changes"
     " have_a_look_at_my have_a_look_at_the_work work_i_finished i_finished i_have_finished what_i_wrote_for_the_app"
     " what_i_programmed what_i_coded my_part_is my_part_is_done ready_to_go_in ready_to_be_taken hand_*_in"
     " hand_in_what offer_*_for_review get_*_reviewed",
     "pull|request|review create branch"),
    ("waiting_for_me_to_look waiting_for_my_blessing my_blessing whose_work_is whose_changes waiting_for_my"
     " still_to_be_looked anything_to_review what_should_i_look_at what_have_the_others_handed handed_in",
     "pull|review|request list"),
    ("let_it_in let_*_in take_it_in take_*_in bring_*_in put_*_in_the_main_version put_*_into_the_main"
     " put_together_with bring_together bring_*_together_with goes_into_the_main can_go_in may_go_in accept_*_change"
     " accept_*_changes accept_*_work adopt",
     "merge|pull request branch"),
    ("looks_fine_to_me looks_alright is_fine_with_me i_am_happy_with happy_with_the_change not_happy_with"
     " send_*_back back_to_the_drawing needs_another_go tests_are_missing do_it_again give_*_my_okay give_*_the_okay"
     " give_*_the_thumbs have_my_okay has_my_okay my_verdict my_judgement criticise criticize critique",
     "review|approve|pull request"),
    ("what_did_somebody_alter what_has_somebody_changed what_has_somebody_altered actually_alter actually_change"
     " exactly_did_somebody_change what_would_be_different what_is_different_in which_files_did before_and_after"
     " old_and_new line_for_line line_by_line",
     "diff|change|pull commit"),
    ("where_in_our_code where_in_the_code where_in_the_program where_in_the_app where_do_we_work_out"
     " where_do_we_calculate where_do_we_compute where_do_we_check where_do_we_set where_do_we_send where_do_we_ask"
     " where_do_we_store which_part_of_the_program which_part_of_the_code place_in_the_code place_in_our_code"
     " places_in_the_code in_our_program in_our_programs responsible_for_the_calculation",
     "code|search repository"),
    ("put_*_up_in_our_code up_in_our_code into_our_code add_*_to_the_project add_*_to_our_project"
     " put_*_into_the_project put_*_in_the_project put_*_into_the_repo save_*_to_the_project"
     " bring_*_up_to_the_server style_sheet get_my_files_into in_one_go_to_the_project",
     "commit|push|file repository"),
    ("something_crazy something_new_without without_ruining without_spoiling without_disturbing without_endangering"
     " without_messing without_affecting without_anyone_noticing mess_around play_around play_with_an_idea"
     " try_an_idea try_out_an_idea own_playground work_on_it_separately on_the_side side_track separate_version"
     " a_version_for_me work_in_peace",
     "branch|fork create"),
    ("play_with_their play_around_with_their their_project their_program take_their take_over_their copy_their"
     " my_own_copy_of their_work_as_a_start build_on_their change_their",
     "fork|repository"),
    ("been_tinkering been_working_on been_busy_with been_up_to_in been_done_on been_done_in"
     " what_has_been_going_on_in who_has_been who_did_the_last who_was_the_last who_was_last last_person_to"
     " what_was_last_done what_was_the_last done_this_week done_since done_lately happened_to_the_code"
     " happened_in_the_project what_have_we_done progress_of_the progress_on_the what_have_the_developers",
     "commit|history list"),
    ("fresh_home fresh_start home_for_the home_for_our place_for_our_code start_a_fresh place_for_the_new_program"
     " for_the_new_app for_the_new_program new_software from_scratch",
     "repository|project create"),
    ("go_through_last_night go_through_okay last_night_s last_nights all_green everything_green everything_pass"
     " all_tests all_the_tests all_checks did_everything_pass did_everything_run did_it_work_out still_building"
     " still_compiling finish_building finished_building automatic_tests automatic_checks nightly_run robot_checks"
     " what_went_wrong_in_the_build is_it_still_red is_it_green",
     "workflow|build|test|run status"),
    ("bring_*_out bring_*_out_to time_to_bring out_to_our_users to_our_users to_the_users to_our_customers_the_new"
     " hand_*_to_the_users give_*_to_the_users let_*_loose ready_for_the_public ready_for_customers ready_for_users"
     " next_version_out new_version_out put_*_out there_for_download make_*_public for_everyone_to_download",
     "release|publish|version"),
    # Pages
    ("bring_*_up bring_up_the call_*_up s_homepage s_website s_site homepage_of site_of page_of_the"
     " take_me_to_*_website take_me_to_*_homepage take_me_to_*_site go_to_*_site go_to_*_website go_to_*_page"
     " look_at_*_website open_*_website open_*_page open_*_site railway_site on_their_website on_their_site"
     " on_the_website on_the_web on_the_internet over_the_internet on_the_net",
     "page|browser|url|navigate"),
    ("agree_to_the agree_to_the_cookies cookies cookie_thing cookie_notice goes_away go_away_so make_*_go_away"
     " get_that_out_of_the_way hit_the hit_the_green hit_the_red the_green_one the_red_button the_blue_button"
     " the_big_button the_little_cross the_cross_at the_arrow next_button button_that button_which confirm_button"
     " put_*_in_the_basket put_*_in_my_basket put_*_in_the_cart add_*_to_the_cart add_*_to_the_basket"
     " close_that_window pop_up the_first_hit first_hit follow_the_link",
     "click|element|page|button"),
    ("my_name_and_address name_and_address name_and_email put_my_name_and put_in_my_name put_in_my_details enter_my"
     " enter_our fill_*_in fill_*_out order_page booking_page sign_up_page registration_page login_page"
     " give_them_my_address give_them_my_details all_the_boxes the_blanks blanks sign_*_up_for sign_*_in log_*_in"
     " apply_for_the my_birthday_and my_date_of_birth",
     "form|fill|field page"),
    ("pick_*_from choose_*_from choose_*_in_the_list pick_*_out_of select_*_from set_*_to_english set_the_country"
     " set_the_size set_the_colour in_the_menu from_the_menu the_second_option instead_of_standard express_delivery",
     "select|option|dropdown"),
    ("put_*_in_the_search write_*_in_the_search type_*_in_the_search enter_*_in_the_search type_*_into enter_*_into"
     " write_*_into_the_field put_*_into_the_field put_*_in_the_field put_*_in_the_box bar_of_the in_the_search_bar"
     " into_the_search letters_into",
     "type|text|field|element"),
    ("with_my_own_eyes see_for_myself what_the_*_looks_like what_*_looks_like how_*_looks what_does_*_look_like"
     " how_does_*_look snap_a_picture take_a_picture_of_the take_a_picture_of_what picture_of_the_screen"
     " picture_of_the_website photo_of_the_screen photo_of_the_page show_me_how_the_page show_me_how_the_site"
     " proof_of_what",
     "screenshot|page|capture"),
    ("could_i_press can_i_press could_i_click can_i_click what_could_i_do_here what_can_i_do_on what_is_there_on"
     " what_does_the_page_offer what_does_the_page_say what_does_the_site_say what_does_this_page"
     " what_is_on_the_site which_fields_are_there describe_the_page",
     "snapshot|page|element"),
    ("the_page_we_were we_were_on page_we_had where_we_were where_we_came_from one_step_back a_step_back"
     " last_page_i_was go_one_back back_one_page back_to_the_results back_to_the_last back_to_the_previous"
     " back_to_where",
     "back|page|previous"),
    ("through_the_website put_*_on_the_website put_*_on_their_site put_my_picture put_my_cv hand_*_in_online"
     " hand_in_my_documents send_*_through send_*_through_the_form send_*_through_the_website add_my_documents"
     " submit_my_photo submit_my_papers give_them_my_photo application_page",
     "upload|file|page"),
    ("grumbling grumble under_the_hood complain_in_the_background complains_about_something"
     " something_wrong_with_the_page wrong_with_this_page wrong_with_the_site does_the_page_report"
     " why_is_the_page_blank page_is_blank page_stays_white",
     "console|message|page error"),
    ("outside_services talk_to_on talk_to_other does_this_page_talk does_the_page_call does_the_page_ask"
     " does_this_site_contact who_does_the_page who_else_gets_my_data in_contact_with sends_my_data phones_home"
     " phone_home fetched_from loaded_from gets_its_data",
     "network|request|page"),
    ("keep_this_article keep_the_article read_*_on_the_plane read_*_on_the_train read_*_later read_*_on_the_way"
     " read_*_without_internet on_the_plane without_internet without_network take_*_with_me take_this_page"
     " article_for_later page_for_later",
     "pdf|save|page"),
    # Money
    ("wants_*_back want_*_back wants_his_*_back wants_her_*_back give_*_back_to give_*_back get_*_back_from_us"
     " pay_*_back send_*_back_to_the_customer money_returned charged_double charged_too_much paid_double paid_twice"
     " was_charged_twice make_it_good make_*_good arrived_broken came_broken sent_it_back sent_*_back"
     " brought_it_back returned_it took_it_back never_arrived not_arrived wrong_size cancelled_her_order"
     " cancelled_his_order",
     "refund|payment|charge"),
    ("settled_up not_settled has_not_settled still_has_to_pay still_have_to_pay still_to_pay yet_to_pay paid_for"
     " paid_yet paid_already paid_on_time paid_their paid_his paid_her still_waiting_for_money waiting_for_payment"
     " waiting_for_our_money owe_us money_are_we_owed owing in_debt in_the_red_with_us late_payers slow_payers"
     " behind_with",
     "invoice|bill|payment list status"),
    ("in_the_kitty kitty in_the_till in_the_coffers in_the_bank in_the_pot nest_egg how_much_have_we_got"
     " how_much_do_we how_much_did_we_take how_much_is_left how_much_is_there how_much_have_we_left money_is_left"
     " money_do_we_have money_have_we enough_money money_in_our our_finances flush skint how_rich_are pay_ourselves"
     " withdraw payout_to_us",
     "balance|account|available payment"),
    ("is_quitting is_leaving_us is_leaving wants_to_leave wants_to_quit wants_to_stop does_not_want_to_continue"
     " not_renew will_not_renew not_continue end_*_membership end_*_subscription stop_*_subscription"
     " stop_*_membership cancel_*_membership cancel_*_plan gave_notice has_given_notice member_is gym_member"
     " gave_up_the_membership",
     "subscription|cancel|membership plan"),
    ("knocked_off knock_off knock_*_off taken_off take_*_off_the_price regulars regular_customers loyal_customers"
     " faithful_customers ten_percent five_percent a_third_off half_price half_off something_off a_little_off"
     " cheaper_for less_for_students nice_price special_price thank_you_code give_*_off get_*_off code_that_gives",
     "coupon|discount|percentage create off"),
    ("is_thirty_euros is_twenty_euros from_now_on_costs now_costs will_cost should_now_cost costs_now goes_up_to"
     " put_the_price put_up_the_price is_to_cost we_charge we_now_charge we_ask we_want_for we_take_for asking_price"
     " a_piece apiece per_piece per_hour an_hour_costs a_head per_head",
     "price|amount|product create"),
    ("should_pay_for_it should_pay_for they_should_pay has_to_pay_for make_out_a_bill write_*_a_bill send_*_a_bill"
     " days_work days_of_work i_worked_for i_did_*_for did_some_work hours_for charge_*_for bill_*_for invoice_*_for"
     " ask_*_to_pay request_payment demand_payment put_*_on_the_bill my_fee our_fee for_services",
     "invoice|bill|customer create"),
    ("off_it_goes bill_*_is_fine bill_is_right the_bill_*_can_go invoice_*_can_go can_be_sent_out send_*_bill_out"
     " invoice_is_fine invoice_is_right make_the_invoice_final make_the_bill_final bill_is_correct out_with_the_bill"
     " out_with_the_invoice",
     "invoice|finalize|draft send"),
    ("chip_in throw_in_a_few support_us support_me fans donors donor followers_can_pay customers_can_pay"
     " how_can_people_pay pay_us pay_me_online pay_me_for click_to_pay something_to_click_to_pay a_way_to_pay"
     " buy_me_a_coffee whip_round collection_for collect_*_for_the_gift send_us_money send_me_money give_us_money",
     "payment|link|pay price"),
    ("gone_to_their_bank gone_to_the_bank went_to_the_bank via_their_bank through_their_bank behind_our_back"
     " had_the_payment_reversed took_the_money_back says_it_was_not_him says_it_was_not_her does_not_recognise"
     " denies_having deny refuse_to_pay arguing_about complaining_about_a_charge",
     "dispute|chargeback list"),
    ("new_buyer got_a_new_buyer got_a_new_customer got_a_new_client have_a_new_customer have_a_new_client won_a_new"
     " wants_to_become_a_customer is_buying_from_us starts_buying buys_from_us_now put_*_in_our_customer"
     " add_*_to_our_customers",
     "customer|client create"),
    ("done_business_with do_business_with business_with bought_from_us_before ever_bought ordered_from_us_before"
     " one_of_our_customers who_are_our_customers who_buys_from_us do_we_know_the_buyer in_our_customer_list",
     "customer|client list"),
    ("we_sell_*_as_well we_also_sell we_now_sell we_are_selling are_going_to_sell sell_*_too new_in_our_shop"
     " new_in_the_shop on_the_shelf on_our_shelves on_our_shelf add_*_to_our_range"
     " put_*_in_our_shop put_*_in_the_shop for_sale_from",
     "product|price create sell"),
    ("pay_us_every pays_us_every pay_every_month pay_monthly paying_every on_a_subscription still_subscribed"
     " regular_payers standing_order running_subscription who_is_subscribed which_members paying_customers"
     " on_the_premium",
     "subscription|customer|plan list"),
    # Teams
    ("let_the_team_know let_*_team_know tell_the_whole tell_the_group tell_our_group tell_my_group tell_them_all"
     " tell_*_in_the_group tell_*_in_the_chat tell_all_the say_*_in_the_group say_*_in_the_chat put_*_in_the_group"
     " put_*_in_the_chat share_*_with_the_group share_*_with_the_team share_*_with_everyone wish_the_colleagues"
     " wish_the_team wish_everyone wish_everybody in_the_general in_our_group everyone_at_work everybody_at_work"
     " everyone_in_the_office everybody_in_the_office all_colleagues all_the_colleagues my_colleagues fellow_workers"
     " shout_it spread_the_news happy_new_year merry_christmas good_morning_to welcome_*_to_the_team",
     "channel|message|post"),
    ("while_i_was_off while_i_was_out while_i_was_gone while_i_was_on what_have_i_missed what_is_new_in"
     " what_is_happening_in what_is_up_in what_are_they_saying what_are_people_saying what_are_they_discussing"
     " what_do_they_talk what_did_the_team what_did_the_group what_did_marketing what_did_sales in_the_sales"
     " anything_interesting anything_important catch_*_up catch_me_up fill_me_in bring_me_up_to",
     "channel|history|message get latest"),
    ("give_*_a_heart give_*_a_little_heart a_little_heart give_*_a_smile give_*_a_thumbs_up give_*_a_thumb"
     " a_thumbs_up show_*_that_i_like show_that_i_like like_*_post like_*_message put_a_smiley applaud_her"
     " applaud_him laugh_at_his laugh_at_her send_a_smile wink good_news_from",
     "reaction|emoji|message add"),
    ("a_corner a_corner_where a_corner_for own_corner among_themselves among_ourselves can_talk can_talk_about"
     " can_chat could_talk a_place_where_we a_place_where_the a_space_where a_room_where somewhere_to_talk"
     " somewhere_to_discuss somewhere_to_chat talk_in_private own_group separate_group set_up_a_group make_a_group"
     " make_a_room",
     "channel|group|room create"),
    ("get_*_into_our get_*_into_the bring_*_into_our bring_*_into_the add_*_to_our_group add_*_to_the_group"
     " add_*_to_the_chat let_*_into_our let_*_into_the should_be_in_our_group should_be_in_the_group is_missing_in"
     " is_missing_from_the_group also_wants_to_join would_like_to_join take_*_into_the_group project_group",
     "invite|channel|group|user member"),
    ("what_does_she_do what_does_he_do does_she_do_here does_he_do_here who_is_that who_is_this who_on_earth_is"
     " what_is_her_job what_is_his_job what_is_her_number what_is_his_number her_number his_number her_extension"
     " s_extension how_do_i_get_hold get_hold_of how_can_i_call which_department what_department her_position"
     " his_position his_role her_role in_charge_of_the who_is_responsible",
     "profile|user|member get phone title"),
    ("who_all_works works_here_at who_works_in who_works_with_us who_works_at_our who_is_in_the_team"
     " who_is_in_my_team who_is_on_my_team who_belongs_to our_whole_team everyone_we_have all_who_work"
     " how_many_colleagues names_of_my_colleagues names_of_everyone names_of_all",
     "user|member|workspace|profile list"),
    ("everybody_should_see everyone_should_see people_should_see others_should_see should_see_that_i show_that_i_am"
     " show_*_that_i_am show_them_i let_people_know_i let_*_know_i_am at_the_doctor at_the_dentist in_the_gym"
     " on_the_phone_until on_my_way on_the_road in_a_call in_a_workshop on_a_break having_a_break be_disturbed"
     " disturbed taking_a_break gone_for_a_walk out_for_lunch not_to_be_disturbed want_to_be_bothered be_bothered"
     " not_be_bothered want_peace leave_me_alone need_quiet heads_down i_am_back_at_my",
     "status|set emoji"),
    ("should_get_a_good_morning tomorrow_at_eight_the tomorrow_at_nine_the on_monday_morning_the"
     " first_thing_tomorrow first_thing_on_monday not_now_but not_before_nine at_midnight_wish when_they_wake_up"
     " send_*_tomorrow post_*_tomorrow send_*_at_eight send_*_at_nine tell_*_tomorrow remind_the_group"
     " remind_everyone remind_everybody",
     "schedule|message later post"),
    ("in_response_to in_response_to_my in_reply_to_my said_to_my_suggestion said_about_my think_of_my_idea"
     " think_of_my_suggestion what_did_they_think what_do_they_think reacted_to_my reply_to_my answer_to_my"
     " answered_my answers_did_i answer_did_i under_my_post under_my_message under_my_question anyone_answer"
     " anybody_answer",
     "thread|reply|message get"),
    ("right_beneath right_below right_under answer_*_beneath answer_*_below answer_*_under answer_right reply_right"
     " write_*_below write_*_beneath under_his_post under_her_post under_his_question under_her_question below_his"
     " below_her beneath_his beneath_her",
     "thread|reply|message"),
    ("where_do_folks where_do_the_others where_do_colleagues where_do_they_talk where_do_they_chat where_can_i_talk"
     " where_can_i_chat where_can_we_talk is_there_a_group is_there_a_room is_there_a_channel is_there_a_place_where"
     " groups_do_we groups_can_i rooms_are_there",
     "channel|group|room list"),
    # Said of anybody and anything
    ("has_*_paid did_*_pay has_*_settled have_*_paid have_*_settled", "invoice|bill|payment list status"),
    ("get_her_money get_his_money get_their_money broken_when_it came_damaged arrived_damaged was_damaged was_faulty"
     " return_what_he return_what_she return_what_they",
     "refund|payment"),
    ("did_*_pass did_*_go_through did_*_succeed did_*_fail has_*_failed has_*_passed have_*_passed",
     "workflow|build|test|run status"),
    ("what_did_*_change what_has_*_changed what_have_*_changed what_does_*_change what_would_*_change",
     "diff|change|pull|commit"),
    ("have_we_built has_*_built did_we_build built_since been_built been_programmed", "commit|history list"),
    ("for_the_public good_enough_for to_the_public ready_for_the_world into_the_world", "release|publish"),
    ("press_*_button click_*_button push_*_button hit_*_button click_on", "click|button|element page"),
    ("error_hidden hidden_error hidden_errors error_behind errors_behind silent_errors",
     "console|error|page message"),
    ("group_of_its_own group_of_their_own group_of_our_own channel_of_its_own room_of_their_own",
     "channel|group create"),
    ("was_decided been_decided decided_in agreed_in was_agreed been_agreed what_was_agreed discussed_in",
     "channel|history|message get latest"),
    ("tell_*_group tell_*_team ask_*_group ask_*_team write_*_group write_*_team inform_*_group inform_*_team",
     "channel|message|post"),
    ("mark_me_as show_me_as_busy show_me_as_away be_left_in_peace", "status|set"),
    ("should_be_reminded must_be_reminded needs_to_be_reminded remind_*_at remind_*_on", "schedule|reminder message"),
)  # fmt: skip
