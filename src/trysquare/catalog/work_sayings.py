"""Work sayings: how people speak about mail, dates, files, code, data, pages, money, teams, places and what is known.

Written as the table of sayings is: on the left what people say, on the right the words that tools are described with.
"""

from __future__ import annotations

WORK_SAYINGS: tuple[tuple[str, str], ...] = (
    # Weather
    ("sweater coat scarf hat mittens wellies parka poncho sunglasses t_shirt parasol sunhat dress_warm dress_up_warm"
     " layers heater sweat sweating shiver nippy mild scorching sweltering boiling_hot soaked wet dry damp slippery"
     " degrees outdoor terrace balcony laundry_outside hang_out_the_washing water_the_garden mow wash_the_car sledge"
     " sledging snowman surf sailing kite stargazing camping tent bbq stay_dry get_wet clear_skies puddle",
     "weather|forecast|temperature"),
    ("weather_like weather_be looking_outside it_be_like_outside how_cold how_hot how_warm will_it_be going_to_be"
     " white_christmas rest_of_week next_few_days coming_days",
     "weather|forecast|temperature"),
    ("lightning typhoon landslide gust gusts ice_storm black_ice safe_outside safe_to_drive weather_warning emergency"
     " siren drought",
     "alert|warning|weather severe"),
    ("fresh_air air_like breathing lungs open_the_windows open_a_window ozone haze hazy dusty wheeze hay_fever mask",
     "air|pollution quality"),
    # Places and ways
    ("by_car by_bus by_train by_bike by_tram by_foot by_bicycle by_public_transport how_to_get how_can_i_get get_there"
     " get_me_to navigate_to fastest_way quickest_way best_way_to shortest_way way_from lost stroll quickest footpath"
     " roundabout exit bridge tunnel toll stop_off cross bicycle car truck lorry pedestrian",
     "direction|route"),
    ("how_long_to how_long_is_the how_many_minutes drive_from drive_to walk_from walk_to how_near further farther"
     " travel_time eta arrive arrival stops_between half_way halfway far_away far_apart far_is nearer",
     "distance|direction|route travel time"),
    ("pizzeria sushi vegan vegetarian burger kebab steakhouse icecream ice_cream tearoom winebar nightclub mall"
     " hardware_store florist butcher laundry launderette optician vet clinic library gallery zoo castle monument"
     " temple cathedral mosque synagogue harbour marina campsite hostel toilet restroom drugstore bookstore toy_shop"
     " locksmith garage gas_station charging_station post_office cash_machine somewhere_to something_to_eat thirsty"
     " grab_a somewhere_nice places_to things_to_do worth_seeing round_here in_town downtown in_this_area any_good"
     " good_place good_spot spot spots where_can_i_buy where_can_i_get where_can_i_eat neighbourhood neighborhood"
     " vicinity within_reach",
     "place|restaurant|venue|shop search"),
    ("what_time_does when_does_it_open when_do_they_open when_do_they_close does_it_close how_late_is until_when"
     " are_they_open is_it_open still_serving phone_of number_of_the_restaurant stars reviews reputation worth_it",
     "place|hour detail open"),
    ("time_is_it time_there hours_ahead hours_behind hours_apart what_s_the_time too_late_to_call too_early_to_call"
     " asleep awake wake_them midnight_in daylight_saving summertime",
     "zone|clock time"),
    ("how_tall how_high_up uphill climb steep altitude_sickness feet_above metres_above low_lying highest",
     "elevation|altitude"),
    ("exact_location on_the_map pinpoint pin_on northing easting lng lat_lon spot_on_the_map",
     "coordinate|geocode|location|latitude"),
    ("which_street what_street whats_at what_is_at house_number zip_code postal what_address street_name address_at"
     " address_for_these",
     "address|geocode|postal"),
    # Calendar
    ("gig concert_on match_on checkup check_up haircut physio therapy tutorial seminar symposium meetup playdate"
     " sleepover graduation christening funeral baptism prom reunion barbecue_at recital audition parents_evening"
     " viewing handover briefing debrief townhall all_hands demo_day huddle weekly_call coffee_with dinner_with"
     " drinks_with meet meet_with meeting_with call_with engagement commitment",
     "event|calendar|meeting|appointment"),
    ("what_s_on what_is_on what_do_i_have have_i_got_anything got_anything anything_on do_i_have_anything my_plans"
     " any_plans am_i_doing am_i_busy where_do_i_have_to_be when_is_my when_do_i when_s_my when_am_i next_appointment"
     " next_meeting full_day packed my_diary my_calendar my_agenda itinerary timetable how_does_my",
     "event|calendar list"),
    ("put_in_my_diary put_in_my_calendar in_my_diary into_my_calendar into_my_diary in_the_diary on_the_calendar"
     " to_my_calendar set_up_a get_us_together slot_in squeeze_in make_an_appointment fix_an_appointment make_time"
     " plan_a plan_the invite_everyone hold_a host_a block_out block_off reserve_the_afternoon",
     "event|calendar|meeting create"),
    ("move_the_meeting move_it_to push_it_to push_the_meeting half_an_hour_later make_it_an_hour different_time"
     " different_day other_time rearrange can_t_make_it_at change_the_time put_back prolong lengthen cut_short"
     " change_the_location add_somebody_to_the_meeting",
     "event|meeting|appointment update"),
    ("call_off scrub no_longer_takes_place not_happening isn_t_happening won_t_happen fell_through axe",
     "event|meeting|appointment delete cancel"),
    ("when_are_we when_would when_does_everyone when_is_everybody all_free both_free we_all_meet we_both got_time"
     " has_time have_time everyone_is_free everybody_has_time suit suitable fits_everyone time_to_meet a_good_time"
     " good_time mutually overlapping_time free_at_the_same both_of_us all_three",
     "slot|free|busy|availability attendee find"),
    ("i_ll_come i_will_come i_can_come can_make_it say_yes_to count_me_out i_m_in rain_check send_my_regrets"
     " accept_the_meeting maybe_i_come tentative tentatively pass_on_the_invite",
     "invitation|invite respond accept"),
    ("who_else_is who_will_be_there who_is_invited where_is_the_meeting which_room_is what_room"
     " link_for_the_meeting join_link zoom_link video_link dial",
     "event|attendee|location get"),
    ("on_leave on_vacation i_ll_be_away i_will_be_away i_am_off away_from gone_until not_in_the_office"
     " not_working_next out_of_town paternity maternity bank_holiday time_off day_s_off unavailable won_t_be_in",
     "office|absence|vacation out"),
    ("which_calendars my_calendars shared_calendars family_calendar whose_calendars", "calendar list"),
    # Mail
    ("email mail emails mails e_mail gmail outlook post_from mailing correspondence_with",
     "message|email|mail|mailbox"),
    ("dear_sir rsvp_by write_an email_somebody mail_somebody message_somebody contact_somebody get_in_touch reach_out"
     " drop_a_note invite_by_email wish_him wish_her by_mail by_email via_email in_an_email",
     "email|message|mail send"),
    ("get_back_to_somebody reply_that answer_somebody answer_that answer_her answer_him tell_her_that_i reply_back"
     " confirm_to say_thanks_to accept_his accept_her respond_to_her respond_to_him reply_all",
     "reply|respond message"),
    ("did_i_get did_we_get have_i_got_mail any_news_from any_mail anything_from what_came_in in_my_mail in_my_inbox"
     " got_an_email which_emails who_emailed who_wrote_to who_has_written find_the_mail find_the_email that_mail_from"
     " that_email_from confirmation_from confirmation receipt booking_confirmation has_answered has_replied replied"
     " has_somebody_replied reply_yet emailed mailed message_from mail_from email_from mails_from emails_from",
     "message|email|mail search"),
    ("what_does_the_email what_does_his_mail read_me_the_mail read_out_the_email open_the_mail open_the_email"
     " latest_mail newest_email",
     "message|email|mail read"),
    ("for_now_don_t_send not_yet_send not_send_it send_it_later finish_it_later first_draft outline draft_an"
     " i_will_send_it_myself start_an_email before_it_goes_out",
     "draft"),
    ("send_it_on pass_it_on send_on pass_this_on send_along pass_to let_somebody_see give_somebody_a_copy also_send"
     " should_see_this let_somebody_have",
     "forward message"),
    ("attachments pdf_from photos_from file_from_the_mail save_the_pdf save_the_photos ticket_from_the_mail"
     " pictures_she_sent document_she_sent document_he_sent what_was_attached",
     "attachment download"),
    ("in_future in_the_future straight_to straight_into as_soon_as all_mails_from every_mail every_email incoming rule"
     " auto_sort bounce blacklist never_see unwanted",
     "filter|rule|incoming message"),
    ("mark_as_read mark_as_unread as_read as_unread as_important as_done put_a_star flag_it read_it_already tag_it"
     " under_the_heading colour_code",
     "label|tag"),
    ("which_labels what_labels which_categories labels_do_i", "label list"),
    ("chuck chuck_out toss binned don_t_need_this don_t_need_that don_t_want_this dump_this", "delete|trash|remove"),
    # Files
    ("notes list_of_things shopping_list todo todo_list to_do_list contract essay report homework poem"
     " invoice_template dissertation novel script_of lyrics cv_file plan_txt text_file paper letter_to_the budget"
     " speech worksheet slides presentation brochure flyer template log logs config configuration settings_file",
     "file|document|text"),
    ("what_does_it_say_in what_is_in_the_file open_the_file open_the_document read_through show_me_the_file"
     " look_into let_me_see_the both_files these_files three_files several_files files_at_once",
     "file|content|text read"),
    ("save_it_as save_that put_it_in_a_file store_this_in write_it_to make_a_file new_file new_document keep_this_as"
     " save_the_text save_this_text put_this_text keep_a_copy_of_this write_this_down put_in_writing",
     "file|content write"),
    ("fix_the_spelling spelling misspelled wrong_word change_the_word change_the_title change_the_line line_in"
     " instead_of everywhere_in find_and_replace cross_out strike add_a_line add_the_line delete_the_line sentence"
     " wording",
     "edit|file text line"),
    ("make_a_folder create_a_folder a_place_to_put somewhere_to_put subfolders_for", "directory|folder create"),
    ("what_is_in_my what_files which_files which_documents what_do_i_have_in everything_in_the_folder in_the_folder"
     " in_my_folder what_have_i_saved files_are_there lying_in",
     "directory|file list"),
    ("all_folders folders_and_files overall_structure everything_under all_the_way_down laid_out organised_in"
     " outline_of_the bird_s_eye nested_folders",
     "tree|directory|recursive"),
    ("give_the_file give_it_a rename_the retitle name_it different_name to_the_other_folder over_to out_of_the_folder"
     " shift_the_file from_my_downloads out_of_downloads put_the_file put_these_files archive_the_files",
     "move|rename file"),
    ("where_did_i_save where_is_the_file where_s_the_file where_is_my where_are_my have_you_seen did_i_save i_saved"
     " saved_somewhere find_the_file find_my find_all_the any_file files_called named called_something track_down"
     " dig_out turn_up ends_with ending_in extension",
     "file|search pattern name"),
    ("how_much_space take_up takes_up heavy weigh how_old_is when_did_i_last when_was last_edited last_saved"
     " created_when date_of_the_file who_may_read read_only writable bytes mb gb",
     "file|size|info time"),
    ("which_folders_can which_directories can_you_see can_you_access are_you_allowed may_you allowed_to_see"
     " allowed_to_open",
     "allowed|directory|access list"),
    # Data
    ("how_many_new how_many_sign total_of sum_of the_total the_average in_total on_average the_most the_least per_day"
     " per_week per_year per_region by_country by_month last_quarter who_spent spent_most most_popular least_popular"
     " bestseller bestsellers conversion churn growth metric metrics kpi analytics analyse analyze purchases signups"
     " count rank ranking median figure stats statistics trend sold",
     "query|database|sql|row|select"),
    ("what_tables which_tables kind_of_data what_data kinds_of_data what_is_stored we_keep do_we_keep"
     " information_do_we where_do_we_keep",
     "table|schema|database list"),
    ("what_columns which_columns which_fields what_fields made_up_of primary_key what_do_we_know_about_each"
     " how_is_the_table how_is_it_structured attributes properties",
     "table|column|describe schema"),
    ("namespaces schemata parts_of_the_database areas", "schema list"),
    ("set_everybody set_all set_every for_all_customers for_every_customer change_her_address change_his_address"
     " in_the_database into_the_database from_the_database customers_who users_who_have rows_where all_users"
     " all_customers_who raise_all increase_all purge_old mass_update bulk",
     "statement|sql|database|update execute"),
    ("why_does_it_take why_is_it_slow why_is_this_so takes_so_long take_so_long crawl crawling drags query_plan"
     " behind_the_scenes how_does_the_database how_expensive",
     "explain|plan|query execution"),
    ("slowest longest_running eating_up hog hogs worst_queries holding_us_up slows slowing slowing_down"
     " using_most",
     "slow|query list"),
    ("make_it_faster make_this_faster quicker_searches could_be_faster more_quickly speed speeds speedup accelerate"
     " lookups",
     "index|speed|suggest"),
    ("copy_of_the_database copy_of_all_data in_case before_i_break safety_copy secure_our_data export_everything"
     " dump_everything",
     "backup|dump|database"),
    ("database_ok database_okay is_the_database db feeling_well under_load overload in_order working_properly"
     " everything_ok all_good all_right lagging out_of_sync in_sync connections crashed",
     "health|database|check"),
    # Code
    ("bugs hiccup quirk shortcoming annoying doesn_t_respond unresponsive crashes crashing broke broken_since"
     " no_longer_works fails_when wrong_result blank_page wrong_colour misaligned stack_overflow exception leak"
     " report_the report_that note_the_bug log_a_bug open_a_ticket it_would_be_nice would_be_great feature_idea feature"
     " users_complain",
     "issue|bug|ticket create"),
    ("still_broken what_is_broken what_s_broken what_needs_doing things_to_fix left_to_fix to_be_fixed unsolved"
     " unresolved known_bugs open_problems reported_problems what_should_i_work_on",
     "issue|bug|ticket list"),
    ("what_is_the_ticket about_bug about_ticket what_s_ticket the_story_behind number_of_the_ticket",
     "issue|ticket get detail"),
    ("mark_as_solved mark_as_fixed has_been_fixed is_solved been_solved no_longer_a_problem can_be_closed sorted_out"
     " give_the_bug give_the_ticket who_should_fix",
     "issue|ticket|state update"),
    ("say_in_the_ticket add_to_the_ticket tell_the_reporter under_the_bug under_the_issue reply_on_the_ticket weigh_in"
     " add_my_opinion",
     "comment|issue add"),
    ("has_anybody_reported has_anyone_reported already_reported reported_before same_problem come_across"
     " anyone_else_have somebody_else_had known_issue known_problem",
     "issue|search"),
    ("ask_for_a_review up_for_review offer_my_changes put_my_changes put_forward my_branch my_fix to_be_reviewed"
     " please_review my_code code_is_ready for_review hand_in_the_code submit_the",
     "pull|request create branch"),
    ("waiting_to_be_merged open_proposals waiting_for_approval to_review should_i_review awaiting in_review"
     " proposed_changes suggested_changes contributions",
     "pull|request list"),
    ("bring_it_in accept_the_change accept_the_patch accept_his_changes accept_her_changes take_in_the into_the_main"
     " in_the_main land_it land_the squash",
     "merge|pull request"),
    ("what_would_change what_did_somebody_change what_exactly_changed changed_lines lines_changed which_lines"
     " what_does_the_patch what_is_new_in",
     "diff|change|pull"),
    ("looks_fine ask_for_changes send_it_back not_good_enough needs_more_work thumbs_up_on_the_code approve_the"
     " give_feedback second_opinion",
     "review|approve|pull"),
    ("class_called method variable called_from do_we_use where_do_we_use where_do_we_use_the uses_of usages used_in"
     " calls_to defined declared keyword hardcoded deprecated in_the_code in_code anywhere_in_the_code regex",
     "code|search"),
    ("file_on_the_branch readme_of source_of show_me_the_code show_me_the_source on_the_main_branch of_the_repo"
     " in_the_repo",
     "file|repository|content get"),
    ("commit put_my_changes_up upload_the_code save_the_code into_the_repo to_the_repo into_the_repository"
     " check_the_file_in store_the_changes record_the_changes",
     "commit|push|file"),
    ("try_out_without without_touching without_breaking work_on_my_own safely_try parallel own_line separate_line"
     " split_off spin_off",
     "branch create"),
    ("who_did_what who_has_been_working who_broke_it who_broke_the what_has_been_done what_did_we_do what_was_done"
     " been_worked changes_since since_last latest_changes last_changes recent_work development_log",
     "commit|history list"),
    ("copy_of_the_project copy_of_their_project copy_of_the_repo under_my_account in_my_account into_my_account"
     " to_my_account version_of_my_own tinker_with",
     "fork|repository"),
    ("start_a_new_project place_for_my_code home_for_my for_my_code host_my_code new_codebase brand_new",
     "repository|project create"),
    ("did_the_tests did_tests are_the_tests tests_green tests_ok tests_run did_it_pass did_it_build did_the_build"
     " did_it_compile last_build checks_pass went_through go_through broke_the_build are_we_green green_or_red tests",
     "workflow|build|ci|run status"),
    ("ready_to_ship out_the_door bring_out put_out launch_version make_it_official announce_version tag_it_as"
     " hand_out_version release_the first_version stable",
     "release|publish|tag"),
    ("undo revert roll_back go_back_to_the_old", "rollback|revert|undo|back"),
    ("uncommitted unstaged untracked staged", "status|staged|working|changed"),
    ("function functions procedure", "symbol|function|code search"),
    # Pages
    ("internet portal webshop blog shop_page wikipedia landing_page news_site webmail online_shop home_page link_to"
     " open_the_page open_the_site call_up take_me_to_the_page show_me_the_page load_page go_to",
     "page|browser|navigate|url"),
    ("accept_all accept_the_cookies reject_cookies close_the_popup close_the_banner next_page first_result first_link"
     " add_to_cart add_to_basket into_the_basket into_the_cart basket put_it_in_the_basket proceed continue_button"
     " ok_button icon tab_called expand collapse like_button subscribe_button",
     "click|element|button page"),
    ("my_details my_address_in my_name_in fill fill_the fill_in_the complete_the_form application_form contact_form"
     " order_form sign_up_for sign_me_up put_my_name with_my_data personal_details my_personal all_the_fields"
     " credit_card_details shipping_address sign_me_in log_me_in log_me_on register_me",
     "form|fill|field"),
    ("search_field search_box search_bar search_for_it_on into_the_box into_the_field in_the_box in_the_field"
     " enter_the_word write_in_the_field type",
     "type|text|field element"),
    ("out_of_the_list country_list set_the_language drop_down size_medium choose_the pick_the choose_a",
     "select|option|dropdown"),
    ("enter_key hit_enter hit_escape press_enter page_down arrow_key ctrl", "key|press|keyboard"),
    ("picture_of_the_site picture_of_this screen_shot picture_of_what image_of_the_page how_does_the_page_look"
     " how_does_it_look how_the_page_looks what_the_page_looks photograph_the_screen screen",
     "screenshot|page capture"),
    ("what_can_i_see what_do_you_see what_s_on_the_page what_is_on_this on_this_page which_buttons which_links"
     " where_can_i_click elements what_is_on_the_screen what_is_there_to",
     "snapshot|page|element"),
    ("go_back one_back one_page_back where_i_was the_page_before previous step_back", "back|page previous"),
    ("upload_my hand_in_the_file put_my_photo add_my_photo attach_my choose_the_file add_the_document profile_picture",
     "upload|file page"),
    ("on_the_page_run run_some_code page_title in_the_browser computed expression", "script|javascript|page evaluate"),
    ("any_errors errors_on errors_in_the_page page_complain error_messages_on page_errors warnings log_output devtools",
     "console|message|page error"),
    ("what_does_it_load loading loads_in_the api_calls which_servers talks_to fetches being_fetched calls_does"
     " requests_does",
     "network|request page"),
    ("keep_the_page keep_this_page as_pdf to_pdf pdf paper_copy read_it_offline print_this_page", "pdf|save|page"),
    # Payments
    ("customer_base our_customers our_clients our_buyers who_buys do_we_have_a_customer is_she_a_customer"
     " is_he_a_customer already_a_customer one_of_our clientele purchasers",
     "customer|client list"),
    ("took_on_a_new signed_a_new new_buyer new_account_for add_somebody_as register_the_company",
     "customer|client create"),
    ("we_sell start_selling want_to_sell to_our_shop to_the_shop in_our_shop in_the_shop new_item assortment catalogue"
     " catalog range_of ware wares new_in_stock",
     "product create"),
    ("should_be_sold sell_for sell_it_for costs_from cost_from ask_for_it euros euro dollars dollar pounds cents"
     " per_unit price_tag charge_for worth priced",
     "price|amount|product create"),
    ("pay_online pay_by_card where_they_can_pay how_people_can_pay let_people_pay collect_money collect_payment"
     " collect_donations take_payments get_paid way_to_pay payable donation donations",
     "payment|link|pay price"),
    ("write_up_the_bill bill_somebody charge_somebody invoice_somebody ask_for_the_money for_my_work for_the_hours"
     " hours_worked for_the_work settle_up",
     "invoice|bill create customer"),
    ("bill_is_ready invoice_is_ready send_the_bill send_the_invoice send_out_the_bill send_out_the_invoice bill_can_go"
     " issue_the_invoice bill_go_out invoice_go_out go_out",
     "invoice|finalize|send draft"),
    ("hasn_t_paid haven_t_paid has_not_paid have_not_paid who_has_paid did_somebody_pay has_paid still_owes owes due"
     " late_with not_been_paid has_been_paid open_bills open_invoices payments_due debtor debtors past_due settled",
     "invoice|bill list status"),
    ("return_the_money give_the_money_back wants_his_money wants_her_money get_their_money paid_too_much by_mistake"
     " too_much sent_back returned_the faulty_goods not_satisfied unhappy unsatisfied dissatisfied cancelled_order"
     " returns",
     "refund|payment"),
    ("how_much_do_we_have how_much_have_we how_much_is_in left_in_the on_our_account on_the_account in_our_account"
     " bank_balance can_we_afford do_we_still_have can_we_pay_out on_hand rich broke_are",
     "balance|account available retrieve"),
    ("signed_up_for_the who_pays_us pays_monthly pays_every which_plan what_plan on_which_plan subscribed subscribes"
     " running_contracts active_members members_do_we paying_members",
     "subscription|plan|customer list"),
    ("no_more_payments end_the_plan end_his_plan end_her_plan end_her_membership end_his_membership terminate_the"
     " doesn_t_want_to_pay stop_the_monthly leaves_us wants_out end_the_contract opt_out",
     "subscription|cancel"),
    ("per_cent ten_off money_off price_cut gift_code code_for_new code_for_our sale_code summer_sale reward loyal"
     " redeem student_discount",
     "coupon|discount|percentage create"),
    ("disputed chargebacks went_to_their_bank their_bank complained_to claims_back claim claims refuses_to_pay"
     " reversed didn_t_recognise not_recognise stolen_card",
     "dispute|chargeback list"),
    # Teams
    ("post_in write_into_the in_the_group in_the_channel to_the_channel to_the_group to_the_team tell_the_others"
     " the_others tell_everyone let_everyone_know let_the_others say_hello say_hi greet slack discord teams whole_team"
     " everyone_in tell_sales tell_marketing tell_support tell_engineering proclaim",
     "channel|message|post"),
    ("reply_in answer_in answer_under answer_below respond_under beneath in_reply continue_the_discussion",
     "thread|reply message"),
    ("smile smiling happy_face laughing_face celebrate like_his like_her like_the_message give_it_a_thumbs heart_on"
     " react_with like_that",
     "reaction|emoji add message"),
    ("what_have_they what_did_they_say what_did_people_say what_are_they_talking talking_about"
     " what_happened_in news_in the_latest_from anything_new new_in_the been_said last_messages latest_messages"
     " been_discussed while_i_was_away chatter chatting up_to_date",
     "channel|history|message latest get"),
    ("what_did_people_answer what_did_they_answer what_did_they_reply answers_to replies_to responses_to any_answers"
     " any_replies whole_discussion entire_discussion full_discussion rest_of_the_discussion",
     "thread|reply get"),
    ("which_channels what_channels which_groups what_groups which_rooms where_do_we_talk where_is_it_discussed"
     " where_do_people where_can_i_ask right_place_to groups_are_there",
     "channel|list public"),
    ("new_channel new_group new_room place_to_discuss place_to_talk a_group_for a_room_for a_channel_for space_for"
     " own_space start_a_group open_a_group place_for_the_team",
     "channel|group create"),
    ("let_somebody_into add_somebody_to bring_somebody_into get_somebody_into should_also_be_in let_somebody_join"
     " take_somebody_into",
     "invite|channel user"),
    ("who_works who_is_in_our who_is_on who_are_my who_else_works everyone_who_works all_my_colleagues our_people"
     " our_staff staff_list members people_in_our somebody_called_somebody is_there_somebody",
     "user|member|workspace|profile list"),
    ("what_does_somebody_do who_exactly_is how_can_i_reach how_do_i_reach phone_somebody somebody_s_number"
     " somebody_s_job somebody_s_title somebody_s_role s_number s_role s_position s_job s_phone role position_of"
     " occupation telephone_number mobile_number",
     "profile|user|phone get title"),
    ("show_me_as set_me_as i_m_at i_am_at i_m_in_a i_m_busy i_m_away i_m_having i_am_having show_i_am show_that_i"
     " show_everyone_that say_i_am say_that_i away_message out_to_lunch having_lunch on_the_train don_t_disturb"
     " working_from_home from_home concentrate concentrating back_at back_in",
     "status set"),
    ("post_it_tomorrow post_this_tomorrow send_it_tomorrow send_this_tomorrow tell_them_tomorrow tomorrow_morning_to"
     " at_nine_to should_go_out_at go_out_at goes_out_at later_on timed delayed",
     "schedule|message later"),
    # What is known
    ("for_the_record keep_it_in_mind make_a_mental mental_note be_aware bear_that never_forget so_you_know just_so_you"
     " you_should_know fyi for_future please_remember note_for",
     "observation|memory|knowledge|entity add"),
    ("vegetarian_now moved_to lives_now changed_jobs got_a_new is_from comes_from was_born his_birthday"
     " her_birthday has_two has_three drinks_only hobby_is",
     "observation|entity|knowledge|memory add"),
    ("met_a met_somebody a_new_friend new_colleague new_neighbour new_acquaintance new_contact new_employee"
     " there_is_a_new we_have_a_new get_to_know",
     "entity|knowledge|memory create"),
    ("is_the_boss_of is_the_brother is_the_sister is_the_mother is_the_father is_the_wife is_the_husband the_wife_of"
     " the_husband_of the_son_of the_daughter_of the_boss_of cousin_of uncle_of aunt_of s_brother s_sister s_wife"
     " s_husband s_mother s_father s_son s_daughter s_boss got_married are_married friends_with is_friends"
     " knows_somebody know_each_other belong_together works_at works_under employed_by owned_by part_of",
     "relation|relationship|entity create"),
    ("split_up broke_up no_longer_together no_longer_works not_together left_the_company fell_out no_longer_friends"
     " quit_his quit_her",
     "relation|relationship|entity delete"),
    ("forget_about forget_that forget_what erase_everything_about don_t_remember you_can_forget strike_that"
     " delete_what_you no_longer_needs_to_be_known all_you_know",
     "entity|observation|memory|knowledge delete"),
    ("isn_t_true is_not_true was_wrong i_was_wrong not_any_more no_more not_anymore any_longer is_no_longer"
     " no_longer_a has_changed his_mind her_mind",
     "observation|fact|entity delete"),
    ("what_do_we_know do_you_remember do_you_still_know did_i_tell_you what_did_i_tell have_i_told_you i_told"
     " i_mentioned tell_me_about remind_me_what remind_me_of who_was again_who anything_about anything_you_know",
     "knowledge|memory|node|graph search open"),
    ("all_you_remember everything_you_know everything_you_remember all_that_you everything_stored all_your_knowledge"
     " your_whole_memory what_all_do_you your_notes",
     "graph|knowledge|memory read"),
)  # fmt: skip
