"""Other sayings: more of what people ask for that only few tools do, so that it is known to be about something else.

Where there is a tool that draws, cooks or explains the world, these words lead to it.
"""

from __future__ import annotations

OTHER_SAYINGS: tuple[tuple[str, str], ...] = (
    # Deeds of hands
    ("peel slice dice_the grate knead whisk simmer marinate grease defrost thaw_the brew pour_me pour_a stir_the"
     " toast unload_the wash_my wash_the wash_up rinse_the wipe_the_table mop_the dust_my vacuum_the iron_the sew_a"
     " knit_a crochet embroider stitch hem patch_my mow mow_the rake trim prune weed plant_a plant_the water_the"
     " water_my fertilise saw sand_the varnish plaster drill_a screw_the nail_the unscrew tighten loosen oil_the"
     " lubricate unclog plumb wire_the rewire insulate shovel dig_a build_a_house build_me_a_shelf hang_the hang_my"
     " tie_a tie_my unlock_the lock_all lock_up close_the_garage open_the_garage close_the_window open_the_window"
     " close_the_curtains shut_the_door ring_the_bell feed_my walk_my_dog groom brush_the brush_my comb shave_my"
     " massage_my tickle hug_me carry_the carry_my lift_the fetch_me_a bring_me_a hand_me pick_up_the_kids"
     " pick_up_my drive_me drive_my park_my wash_*_car refuel_the pump_up put_air tow_the jack_up change_the_tyre"
     " change_a_tyre change_the_bulb",
     "robot|errand|appliance"),
    # Devices and homes
    ("heating turn_*_heating turn_the_heating turn_down_the turn_up_the turn_*_warmer make_*_warmer make_*_cooler"
     " bedroom bathroom turn_the_lights turn_on_the turn_*_on turn_the_tv turn_the_television switch_*_on"
     " switch_*_off lights_off lights_on fan washing_machine_at coffee_machine_on start_the_dishwasher"
     " start_the_washing start_the_vacuum start_the_oven preheat smart_home smart_plug loudness quieter_please"
     " shut_up_the mute_the unmute raise_the_volume lower_the_volume skip_this_song next_song next_track"
     " next_episode pause_the resume_the rewind fast_forward cast_this airplay",
     "thermostat|lamp|appliance|loudspeaker"),
    # Music, films, pictures, sounds
    ("hear_some hear_a listen_to put_on_some put_on_a put_some_music beethoven mozart bach beatles sing_me hum_a"
     " whistle rap tune_my drum_beat lyrics_of_the_song what_song which_song recognise_the_song name_that_tune"
     " ballad chorus concerto opera_aria instrument flute saxophone cello ukulele",
     "music|song|melody|audio"),
    ("actor actress cinema_tonight blockbuster box_set sitcom anime soap_opera film_about a_film a_movie cat_films"
     " funny_films cut_this_film cut_the_film edit_the_film subtitles_under subtitle trim_the_video",
     "movie|film|video"),
    ("black_and_white sharper blurrier blurry_photo look_younger younger_in look_older remove_the_background"
     " background_of_the_photo take_a_picture_of_me take_a_photo take_my_picture picture_of_me picture_with_a"
     " make_this_picture make_the_photo make_my_photo shrink_these enlarge resize rotate_the mirror_the colourise"
     " colorize watercolor oil_painting design_a design_me a_logo logo icon_for banner_for draw_me draw_my paint_my"
     " doodle cartoon_of portrait_of faces face_in recognise_the_face same_person_on brush_strokes passport_photo_of"
     " font fonts colour_scheme palette",
     "image|photo|picture|drawing"),
    ("background_noise noise noisy_recording voice_memo voice_message voice_note out_loud speak_to_me say_it_aloud"
     " pronounced pronunciation convert_*_mp3 sound_file audio_file podcast_episode turn_*_into_text dub narrate",
     "speech|voice|audio|transcription"),
    # Knowledge of the world
    ("who_painted who_wrote_the_book who_composed who_built_the who_founded who_directed who_sang who_starred"
     " who_is_going_to_win who_will_win who_was_the_first first_man first_woman how_old_was how_old_is_the_earth"
     " how_tall_is_the_eiffel what_is_the_largest largest_country longest_river what_does_the_word what_does_*_mean"
     " meaning_of_the what_is_a what_is_an what_are_the_rules rules_of how_does_a how_do_planes how_do_birds"
     " why_do_cats why_do_dogs why_is_the_sky how_many_*_does_a_*_have how_many_legs how_many_teeth how_many_bones"
     " in_which_year_was in_what_year when_did_the_war when_was_*_born when_did_*_die photosynthesis volcano"
     " volcanoes shark elephant whale penguin mushroom poisonous dinosaur_lived continent ocean constellation"
     " stars_can eclipse black_hole light_year periodic_table dna_is pharaoh napoleon shakespeare einstein world_war"
     " middle_ages roman_empire bible pope nobel quote_by proverb to_a_child year_old explain_*_to_me like_i_am_five",
     "encyclopedia|trivia|science|dictionary"),
    ("how_do_i_tie how_do_i_cook how_do_i_get_rid how_do_i_remove how_do_i_clean how_do_i_make how_do_i_learn"
     " how_do_i_say how_do_you_say how_do_you_make how_do_you_cook how_do_you_spell how_to_cook how_to_make"
     " how_to_draw how_to_tie how_to_knit how_to_train how_to_lose how_to_build stain stains out_of_a_carpet"
     " out_of_my_shirt boil_an_egg goes_with_the goes_well_with which_wine good_name_for name_for_a_baby baby_name"
     " best_phone which_phone which_car which_laptop should_i_buy should_i_marry should_i_study should_i_become"
     " should_i_wear_to what_should_i_do i_feel_lonely feel_sad feel_lonely lonely depressed heartbroken"
     " in_love_with_me does_she_love does_he_love advice life_coach self_help motivate_me cheer_me_up",
     "advice|howto"),
    ("teach_me_the teach_me_to learn_spanish learn_french learn_english learn_german learn_to_play vocabulary"
     " test_my quiz_on do_my_homework solve_the spelling_bee times_table conjugate declension in_finnish in_swedish"
     " in_french in_german in_italian in_russian in_latin in_polish in_turkish in_arabic in_chinese in_japanese"
     " to_french to_spanish to_german into_spanish into_italian into_chinese into_japanese into_finnish"
     " translate_the what_is_*_in_french what_is_*_in_spanish what_is_*_in_german",
     "translate|translation|vocabulary|lesson"),
    ("sum_up summed_up sum_*_up in_five_sentences in_three_sentences in_one_sentence in_a_nutshell boil_down"
     " boil_*_down shorten_the_text tl_dr key_points gist_of_this_book this_book write_me_a_speech write_a_speech"
     " wedding_speech write_me_an write_an_essay write_a_novel write_a_haiku write_a_rap poem_about song_about"
     " story_about essay_about joke_for a_good_joke rhyme_for lullaby_for slogan_for tongue_twister anagram"
     " palindrome",
     "summarize|story|poem|creative"),
    ("square_root times_seventeen multiplied how_much_is_*_times what_is_*_times what_is_*_plus what_is_*_minus"
     " what_is_*_divided percent_of_*_is per_cent_of cube_root sine cosine average_of_these count_backwards"
     " roll_a_dice roll_the_dice flip_a_coin random_number roman_numerals binary hexadecimal",
     "math|calculator|arithmetic|dice"),
    ("yen francs swedish_krona into_dollars into_euros into_pounds into_yen in_dollars in_euros pounds_into"
     " euros_into dollars_into kilo_of gold silver oil_price stock_up share_prices my_shares my_stocks sell_my"
     " buy_some_shares buy_shares going_to_rise going_to_fall insurance_companies cheaper_insurance"
     " electricity_contract phone_contract cheaper_electricity pension_fund inheritance tax_declaration"
     " tax_return_for claim_on_my_insurance",
     "exchange|stock|investment|conversion"),
    # Bodies, animals, trips and goods
    ("hurts hurt my_knee my_back my_head my_tooth my_stomach my_ear my_throat sore swollen itchy dizzy nausea vomit"
     " bleeding broken_leg sprain_my blood_pressure blood_sugar heartbeat my_pulse my_temperature"
     " take_my_temperature how_many_steps steps_did_i how_fast_was_i how_far_did_i_run how_well_did_i_sleep"
     " did_i_sleep my_weight how_much_do_i_weigh calories_are calories_in_a burn_fat six_pack diet_plan is_this_mole"
     " remedy cure antibiotics ibuprofen paracetamol",
     "medical|symptom|fitness|medicine"),
    ("horse_should horse_to_bet bet_on lottery_numbers win_the_lottery chess_move checkmate play_chess"
     " play_cards_with play_a_game world_cup cup_final final_score league_table goalkeeper who_scored marathon_time"
     " medal",
     "game|sport|league"),
    ("get_me_a_taxi call_me_a_cab call_a_taxi order_a_taxi book_me_a book_a_flight book_a_room book_a_hotel"
     " book_a_double double_room_in cheap_flight flight_to fly_to fly_me seats_in_the_cinema seats_for seats_in"
     " tickets_to_the reserve_two table_for_four get_me_two get_me_tickets get_tickets rent_me renew_my_licence"
     " renew_my_id apply_for_a_visa check_me_in_for last_minute_trip",
     "flight|taxi|reservation|ticketing"),
    ("order_a_new order_me_a buy_me_a buy_a_new buy_a_birthday send_*_flowers flowers_to bunch_of_roses"
     " two_large_pizzas pizzas sushi_to_my food_delivered something_delivered groceries_to get_me_some_milk"
     " where_is_my_parcel where_is_my_package my_delivery ship_this send_this_box post_this_parcel send_a_parcel"
     " what_should_i_cook what_is_for_dinner what_can_i_cook dish_with apple_pie pancake pancakes lasagne risotto"
     " gluten_free_bread croissant omelette vegetarians ingredients_for recipe_for_a_cake find_a_babysitter"
     " find_me_a_plumber send_someone_to send_somebody_to cleaning_lady",
     "purchase|grocery|recipe|cooking|parcel"),
    ("call_my ring_my phone_my ring_somebody phone_somebody_and speak_to_*_on_the_phone on_the_phone_for_me"
     " dial_somebody video_chat_with leave_*_a_voicemail text_my text_somebody send_a_fax send_an_sms send_a_text",
     "dial|sms|telephone"),
    ("in_colour_copies copies_in print_forty print_ten print_two print_fifty print_*_copies staple laminate bind_the"
     " scan_this scan_my make_a_photocopy 3d_model 3d_print model_of_my_house floor_plan blueprint make_a_pie_out"
     " pie_chart_of into_a_diagram into_a_chart into_a_graph as_a_chart as_a_diagram mindmap infographic"
     " org_chart_of",
     "printer|scanner|chart|diagram|render"),
    ("strong_new_password strong_password new_password make_me_a_password crack hack_into unlock_my_phone"
     " find_my_phone track_my_phone reset_my_phone my_wifi reboot_the router_restart update_windows defrag"
     " free_up_memory make_*_quieter computer_is_so_loud phone_is_slow more_servers spin_up_two scale_down"
     " provision_a mine_bitcoin train_a_model recognises recognise_birds recognize predict_the",
     "password|firmware|cluster|kubernetes"),
    ("drone_over fly_the_drone drone_video launch_a_rocket telescope_tonight land_the_drone steer_the sail_the"
     " pilot_the",
     "drone|robot"),
    ("is_it_legal legal_to illegal against_the_law my_rights sue_my sue_the press_charges draw_up_a_will my_will"
     " marriage_contract prenup adopt_a_child custody vote_for",
     "legal|lawsuit|notary"),
    # What further servers do
    ("site_is_down site_down server_is_down server_down keeps_going_down went_down error_rate response_times page_me"
     " on_call pager dashboards grafana out_of_memory cpu_load disk_is_full disk_full what_do_the_logs in_the_logs"
     " outages stack_traces who_is_on_duty",
     "monitor|incident|dashboard|telemetry|trace"),
    ("google_it google_for look_it_up look_*_up_online search_the_web search_the_internet find_*_online"
     " find_out_online what_does_the_internet find_articles articles_about research_the papers_about studies_about",
     "web|internet|crawl"),
    ("cell_a1 cells pivot_table in_the_spreadsheet in_the_sheet add_a_column_to_the_sheet excel google_sheet",
     "spreadsheet|sheet|cell|workbook"),
    ("slides_about powerpoint keynote_about title_slide", "slide|presentation|deck"),
    ("on_my_to_do to_my_to_do my_to_do_list my_todo my_tasks put_*_on_my_list add_*_to_my_list tick_off_the_task"
     " chores things_i_have_to_do",
     "todo|task|reminder|note"),
    ("address_book phone_book business_card save_*_number new_contact_for", "contact|vcard|addressbook"),
    ("sales_pipeline prospects prospect cold_call hot_leads close_the_deal", "lead|opportunity|crm|deal"),
    ("clock_me_in clock_in clock_out hours_i_worked log_my_hours overtime", "timesheet|timer|timesheets"),
    ("feature_flag feature_toggle turn_the_feature a_b_test", "flag|toggle|rollout|experiment"),
    ("nothing_in_stock out_of_stock reorder_level in_the_warehouse how_many_are_left", "inventory|stock|warehouse"),
)  # fmt: skip
