"""World sayings: whole fields of life and work that most servers know nothing of, so that they are known for it.

Written as the table of sayings is. Where there is a tool for such a field, these words lead to it.
"""

from __future__ import annotations

WORLD_SAYINGS: tuple[tuple[str, str], ...] = (
    # Staff and sales
    ("hr payslips wages pay_rise pay_raise give_*_a_raise bonus_for appraisal appraisals performance_review"
     " offboarding resign resignation severance hiring candidates job_ad job_advert job_posting job_opening headhunter"
     " expense expenses expense_report expense_claim travel_expenses mileage_claim vacation_days leave_balance"
     " holiday_allowance holiday_entitlement leave_request request_*_leave apply_for_leave sick_note maternity_pay"
     " shift_plan shift_swap duty_rota timecard timecards punch_in punch_out workday bamboohr personio",
     "payroll|recruiting|employment|timesheet"),
    ("crm salesforce hubspot zoho pipedrive leads closed_won closed_lost sales_funnel sales_quota sales_target upsell"
     " cold_calls telemarketing win_rate deal_stage",
     "crm|opportunity|deal"),
    ("ad_campaign ad_campaigns ad_budget campaign campaigns google_ads facebook_ads adwords seo backlinks"
     " keyword_ranking search_ranking influencer influencers billboard press_release landing_page_traffic"
     " conversion_rate click_rate clickthrough mailchimp newsletter_campaign hashtags",
     "campaign|advertising"),
    ("zendesk servicenow freshdesk helpdesk service_desk sap oracle_erp erp purchase_order purchase_orders procurement"
     " supplier_contract goods_receipt stocktaking forklift pallet pallets conveyor assembly_line production_line"
     " factory spare_part spare_parts bill_of_materials",
     "helpdesk|erp|procurement|factory"),
    ("e_signature electronic_signature digital_signature docusign countersign countersigned sign_*_electronically"
     " for_signature sign_here signatory",
     "signature|esign"),
    # Machines, clouds and networks
    ("aws azure gcp heroku vercel netlify cloudflare ec2 cloud_provider cloud_account cloud_bill data_centre"
     " data_center datacenter datacentre virtual_machines autoscale autoscaling autoscaler failover serverless cronjob"
     " cron_job ansible jenkins helm helm_chart load_test load_balancers redis kafka rabbitmq elasticsearch mongodb"
     " cdn hypervisor mainframe message_queue dead_letter container_image docker_image staging_server "
     "  microservice microservices logs_of cpu_usage disk_usage",
     "cloud|cluster|container|telemetry|vm"),
    ("vault api_key api_keys api_token access_token access_key ssh_key ssh_keys private_key tls tls_certificate"
     " ssl_certificate pen_test penetration_test malware ransomware trojan spyware keylogger data_breach"
     " password_manager multi_factor authenticator captcha proxy tor",
     "secret|certificate|security|malware"),
    ("my_phone my_mobile my_smartphone my_tablet my_ipad my_iphone my_laptop my_macbook my_watch my_printer"
     " phone_battery charger charging_cable power_bank headset earphones earbuds airpods webcams graphics_driver"
     " device devices usb_port usb_cable hdmi chromecast xbox playstation nintendo console_game controller joystick"
     " home_button task_manager control_panel registry_editor reboots bluescreen blue_screen disk_space free_up_space"
     " free_up_some_space free_space clear_the_cache storage_space flight_mode sim_card roaming mobile_data"
     " data_volume internet_connection ethernet modem broadband fibre_optic signal_strength screen_time"
     " parental_control ios android linux macos windows_update windows_password",
     "device|firmware|hardware|wifi"),
    ("photoshop illustrator lightroom figma canva blender autocad cad indesign gimp vector_graphic jpeg brush_tool"
     " exposure white_balance pixelated upscale panorama portraits headshot thumbnail thumbnails wallpapers"
     " green_screen voiceover voice_over jingle intro_music time_lapse slow_motion screen_recording record_the_screen"
     " record_the_call record_the_game record_the_show record_my_voice record_a_video screencast livestream"
     " live_stream go_live_on deepfake",
     "image|video|recording"),
    # Networks of people
    ("on_facebook on_twitter on_tiktok on_linkedin on_youtube on_reddit on_snapchat on_pinterest"
     " on_twitch on_mastodon on_bluesky on_threads on_whatsapp on_telegram to_facebook to_instagram to_youtube"
     " to_tiktok pinterest reddit twitch mastodon bluesky tinder bumble grindr whatsapps telegram instagram tiktok"
     " linkedin friend_request friend_requests connection_request connection_requests unfollow unfriend my_followers"
     " my_feed timeline_post profile_visitors swipe_right swipe_left my_crush first_date blind_date wingman",
     "social|follower|dating"),
    # Money at home
    ("pay_my pay_off_my electricity_bill gas_bill water_bill phone_bill heating_bill medical_bill utility_bill"
     " bank_account debit_card credit_card bank_card savings direct_debit iban pin_code overdrawn mortgages"
     " down_payment interest_rates nasdaq dow_jones dax ftse stock_market stock_price stock_exchange shareholder"
     " shareholders etf etfs index_fund index_funds hedge_fund bonds treasury_bonds cryptocurrency dogecoin forex"
     " retirement_fund life_insurance health_insurance car_insurance household_insurance my_insurance insurer"
     " premium_for_my inheritance_tax income_tax vat_return tax_refund tax_deductible tax_bracket"
     " declare_my security_deposit rent_deposit landlord_deposit pawn pawnshop alimony child_support scholarship"
     " student_loan welfare benefits_office lottery_ticket jackpot",
     "bank|tax|insurance|investment"),
    ("to_dollars to_euros to_yen to_francs to_pounds euros_to dollars_to pounds_to yen_to exchange_rates to_kilograms"
     " to_kilos to_inches to_feet to_centimetres to_metres to_miles to_kilometres to_litres to_gallons to_ounces"
     " to_grams to_fahrenheit to_celsius in_kilograms in_inches in_ounces litre litres liter pint_of teaspoon"
     " tablespoon cups_are cups_of how_many_grams how_many_ounces how_many_cups how_many_inches hectare hectares acre"
     " acres knots horsepower kilowatt kilowatts",
     "conversion|converter|exchange"),
    # Law and public offices
    ("law laws lawful unlawful legislation statute statutory liability liable plaintiff defendant verdict prosecutor"
     " testify tenancy eviction evict notice_period is_my_*_allowed copyright copyrighted infringement trademarks"
     " defamation slander libel guardianship power_of_attorney parking_ticket parking_fine speeding_ticket"
     " speeding_fine traffic_fine contest_the_fine alibi small_claims",
     "legal|lawsuit|court"),
    ("citizenship naturalisation green_card residence_permit work_permit id_card identity_card marriage_certificate"
     " death_certificate town_hall_appointment number_plate licence_plate license_plate my_car vehicle_registration"
     " drivers_license passports visas visa_rules customs_duty ballot polling referendum senator parliament embassy_in"
     " consulate military_service census",
     "passport|visa|permit|government"),
    # Body, mind and animals
    ("blood_test blood_tests blood_type x_ray xray mri ultrasound cholesterol insulin hormone hormones thyroid"
     " asthma_spray inhaler allergic_reaction rashes eczema acne wart blister bruise fracture fractured concussion"
     " migraine insomnia depression anxiety adhd autism dementia alzheimer stroke heart_attack covid measles"
     " chickenpox infection infected antibiotic aspirin dosage overdose side_effects side_effect painkiller"
     " painkillers ointment eye_drops contact_lens contact_lenses eyeglasses hearing_aid prosthesis physiotherapy"
     " psychotherapy chiropractor acupuncture homeopathy menopause ovulation period_cramps contraception contraceptive"
     " abortion my_arm my_leg my_foot my_feet my_eye my_eyes my_nose my_neck my_shoulder my_chest my_skin my_hair"
     " my_hand my_wrist my_ankle my_hip my_belly body_fat bmi hydration resting_pulse",
     "medical|symptom|medicine"),
    ("treadmill dumbbell squats push_up pull_ups sit_ups plank_exercise bench_press pilates zumba crossfit workouts"
     " half_marathon run_a_marathon train_for triathlon personal_best calorie carbs protein proteins keto gluten"
     " lactose meal_plan meal_prep fasting weight_loss my_steps my_sleep sleep_tracker bedtime",
     "fitness|nutrition|workout"),
    ("dogs cats leash litter_box poodle beagle labrador dachshund purebred pony foal calf lamb sheep goat pig pigs"
     " duck geese rooster hen_house beehive turtle tortoise snake lizard spider spiders mosquito mosquitoes ants wasp"
     " wasps cockroach mice squirrel squirrels fox wolf wolves lion tiger giraffe giraffes zebra monkey gorilla"
     " kangaroo panda dolphin dolphins octopus lobster crab jellyfish eagle owl pigeon feather feathers veterinarian"
     " neuter flea_collar",
     "pet|animal|veterinary"),
    # House, kitchen and garden
    ("detergent bleach tablecloth mattress pillow blanket duvet wardrobe bookshelf couch armchair carpet rug curtain"
     " chandelier candle fireplace chimney gutter drywall plasterboard tile tiles grout faucet dripping drain bathtub"
     " plunger fuse fuse_box circuit_breaker extension_lead light_switch doorknob hinge hinges keyhole padlock"
     " attic_insulation lawnmower hose sprinkler sprinklers compost flowerbed roses tulips orchid cactus seedlings"
     " branch_of_the_tree apple_tree dead_branch tree_trunk firewood chainsaw ladder wrench screwdriver lamps"
     " heated_floor baby_monitor smoke_detector humidifier dehumidifier hairdryer hair_dryer blender mixer dishes"
     " cutlery saucepan frying_pan wok zipper sewing crocheting origami papier pottery",
     "appliance|household|craftsman|garden"),
    ("flour dough sourdough yeast baking_powder oat oats oatmeal asparagus broccoli cauliflower spinach garlic onions"
     " potatoes tomatoes carrots lentils chickpeas avocado banana bananas strawberries lemon_juice vinegar olive_oil"
     " mayonnaise mustard_sauce cinnamon vanilla gravy stew casserole marinade meatballs schnitzel dumplings pastry"
     " muffin muffins brownies cheesecake icing jam_jar pickle pickled ferment fermented leftovers oven_at medium_rare"
     " al_dente soft_boiled hard_boiled egg_white pinch_of goes_with which_cheese cocktail_recipe mojito"
     " to_the_shopping_list to_my_shopping_list on_my_shopping_list",
     "recipe|cooking|grocery|ingredient"),
    # Things to buy, to get and to send
    ("buy_me buy_a buy_an buy_some buy_two buy_the buy_half pair_of_shoes running_shoes sneakers jeans skirt earrings"
     " necklace bracelet engagement_ring lipstick shampoo toothpaste diapers nappies stroller lego barbie"
     " compare_prices price_comparison cheapest_price black_friday_deals amazon_order my_basket my_order_from"
     " return_my warranty_claim secondhand thrift garage_sale sell_my_old",
     "purchase|cart"),
    (" my_package parcels packages fedex ups dhl hermes_parcel post_office_box customs_form courier_to"
     " track_my_order removal_van movers moving_boxes forwarding_address",
     "parcel|shipment|courier"),
    ("get_me_a_cab minicab limousine lyft bolt_ride e_scooter rent_a_van rent_a_bike rental_car car_rental "
     " business_class first_class upgrade_my_seat frequent_flyer air_miles jetlag_pills stopover boarding_time"
     " gate_number carry_on check_in_online hotel_reservation hotel_booking my_booking my_reservation room_service"
     " sleeper_train interrail book_the_train book_a_seat book_two concert_tickets front_row backstage"
     " season_pass ski_pass museum_pass library_book library_card extend_my_loan",
     "flight|rental|reservation|ticketing"),
    # Films, music, books, games and sports
    ("who_sings who_sang_the who_plays who_played who_stars lead_role main_character main_actor film_director oscars"
     " grammy crime_novel science_fiction thriller paperback graphic_novel manga comic_book sequel prequel trilogy"
     "  ending_of_the_film book_to_read good_book good_film which_film which_movie which_book which_series"
     " something_to_watch something_to_read binge hbo disney hulu imdb goodreads kindle ebook audiobooks track_list"
     " this_track this_song that_song songs tracks_by piece_by_bach hip_hop techno heavy_metal country_music"
     " karaoke_song bagpipes accordion_song harmonica banjo clarinet drummer guitarist sheet_music tab_for_guitar"
     " metronome tuner choreography",
     "music|movie|song"),
    ("hangman tic_tac scrabble monopoly solitaire minesweeper tetris minecraft fortnite pokemon mario zelda cheat_code"
     " level_up speedrun escape_room board_game card_game video_game play_a_round roll_two dices random_person"
     " rock_paper truth_or_dare charades bingo blackjack roulette slot_machine fantasy_football basketball baseball"
     " volleyball handball hockey cricket rugby golf wrestling formula_one grand_prix tour_de_france premier_league"
     " bundesliga champions_league super_bowl nba nfl fifa standings playoffs semi_final semifinal penalty_shootout"
     " red_card referee home_run hat_trick world_record who_lost who_is_winning won_the_match won_the_game"
     " match_between transfer_window",
     "game|sport|league"),
    # What is asked of teachers, writers and wise men
    ("portuguese_into into_portuguese into_dutch into_korean into_polish into_russian into_swedish into_arabic"
     " into_turkish into_hindi into_greek from_korean from_japanese from_chinese from_arabic from_russian"
     " in_portuguese in_korean in_dutch in_greek in_hindi in_danish in_norwegian verbs adverb adjective noun_or"
     " preposition subjunctive plural_of past_tense opposite_of another_word_for word_for_*_in how_to_spell"
     " how_is_*_spelled how_is_*_pronounced what_does_*_stand_for acronym etymology idiom sign_language braille morse"
     " morse_code",
     "translation|dictionary"),
    (" tallest fastest_animal largest_animal smallest_country deepest_lake what_year which_year"
     " which_century stone_age iron_age ice_age renaissance napoleonic civil_war cold_war founding_fathers"
     " declaration_of constitution dynasty pyramid pyramids gladiator vikings samurai mythology zeus greek_god"
     " philosopher plato aristotle nietzsche darwin newton relativity big_bang asteroid comet meteor supernova orbit"
     " spacecraft astronaut astronauts space_station solar_system speed_of_light sound_barrier electron electrons"
     " proton neutron chemical chemical_element acid oxygen hydrogen carbon_dioxide mitochondria chromosome bacteria"
     " enzyme fossil fossils tectonic glacier rainforest desert_animal largest_desert endangered extinct"
     " national_anthem flag_of inventor_of afterlife soul_mate religion buddhism christianity islam"
     " judaism quran torah",
     "encyclopedia|science|trivia"),
    ("quadratic trigonometry calculus polynomial determinant eigenvalue hypotenuse circumference pi_to area_of_a"
     " volume_of_a prove_that theorem theorems primes differentiate probability_of"
     " standard_deviation median_of compound_interest cosine_of sine_curve curve plot_a x_squared greatest_common"
     " prime_number prime_numbers fibonacci times_tables long_division how_much_is_*_plus",
     "math|equation|calculator|plot"),
    ("homework_help my_homework my_exam exam_questions multiple_choice quiz_questions lesson_plan teach_my teach_us"
     " tutor_me learn_how how_do_i_play how_do_i_fix how_do_i_repair how_do_i_build how_do_i_grow how_do_i_stop"
     " how_do_i_become how_do_i_apply how_do_i_train how_do_i_prepare how_do_i_survive how_can_i_lose how_can_i_stop"
     " how_should_i what_is_the_best_way is_it_safe_to_take is_it_safe_to_eat is_it_bad_to is_it_normal"
     " is_it_true_that is_it_ok_to why_do_people why_does_my why_does_the what_can_i_use_instead juggle juggling"
     " magic_trick card_trick meaning_of_my_dream should_i_break should_i_tell should_i_quit should_i_get"
     " should_i_invest should_i_sell should_i_move break_up_with breakup my_ex relationship_advice pickup_line"
     " bucket_list icebreaker cheer_*_up i_am_bored i_am_sad i_feel feel_better pep_talk palm_reading my_palm"
     " fortune_teller zodiac ghost ghosts aliens ufo conspiracy",
     "advice|lesson|howto|tutor"),
    ("write_a_poem_about haikus sonnet ode rap_about song_lyrics screenplay_about monologue punchline knock_knock"
     "  bedtime_stories story_for ghost_story fable acceptance_speech toast_for wedding_vows eulogy"
     " obituary greeting_card birthday_card christmas_card invitation_card caption captions brand_name come_up_with"
     " brainstorm brainstorm_ideas domain_ideas plot_twist fan_fiction pitch_deck powerpoint_about"
     " turn_*_into_a_presentation business_plan_for summarize_the summary_of synopsis book_report"
     " rewrite_*_as_a grammar_of grammar_in spell_check spellcheck plagiarism citation_style bibliography_for",
     "creative|poem|summarize|slide"),
    ("generate_an_image generate_a_picture image_of_a drawing_of_a painting_of_a draw_a_map design_me_a"
     " logo_of sketch_a sketch_me paint_me coloring tattoo_design t_shirt_design mockup wireframe origami_crane"
     " lego_model scale_model statue_of hologram_of",
     "drawing|image|design"),
    # Deeds that no list of letters, files and dates can do
    ("turn_*_into_a_video turn_*_into_a_song turn_*_into_a_poem turn_*_into_a_podcast turn_*_into_a_picture"
     " turn_*_into_a_transcript turn_*_into_an_audiobook",
     "conversion|transform"),
    ("recharge unplug plug_in plug_*_in switch_over dim_the light_the blow_out blow_up set_fire mop_up tidy_my_room"
     " make_my_bed make_the_bed take_out_the_trash take_out_the_bins empty_the_bin do_the_dishes do_the_laundry"
     " wash_up_the set_the_table lay_the_table polish_my shine_my dye trim_my cut_my_hair braid pluck wax_my"
     " scratch_my rub_my tickle_me pinch_me tuck_*_in rock_the_baby burp babysit babysit_my walk_my catch_a catch_me_a"
     " throw_me kick_the punch shoot_the hunt_a fish_for dive dive_for bungee parachute skydive surf_the_waves"
     " juggle_with saddle milk_the shear harvest plough sow_the chop_the saw_off cut_down_the fell_the_tree weave"
     " spin_the forge cast_a_spell conjure summon pray bless baptise meditate_with hypnotise teleport time_travel"
     " levitate",
     "manual|errand|robot|magic"),
    ("ring_up_the ring_the_doctor ring_the_school call_the_doctor call_the_police call_the_office call_the_restaurant"
     " call_an_ambulance put_*_on_speaker put_*_through speakerphone pick_up_the_phone answer_the_phone caller callers"
     " missed_call missed_calls call_waiting conference_line landline text_him text_her text_them text_back"
     " pager_message walkie",
     "dial|telephone|sms"),
    # More of the world, by fields
    ("gpa sat_score harvard yale oxford_university tuition diploma bachelor master_degree phd doctorate"
     " dissertation_topic semester kindergarten_place school_grades curriculum_for apprenticeship_as",
     "course|education|lesson"),
    ("brexit democracy democratic dictatorship communism capitalism socialism monarchy republic congress senate"
     " prime_minister chancellor governor mayor_of nato united_nations european_union treaty sanctions immigration"
     " refugee refugees abolition feminism equality climate_change fake_news top_stories breaking_news gossip_about"
     " celebrity celebrities royal_family kardashian scandal conspiracy_theory stock_crash recession inflation"
     " unemployment gdp",
     "news|politics|encyclopedia"),
    ("cannabis marijuana heroin cocaine nicotine cigarette cigarettes vape addiction addictive addicted alcoholic"
     " hangover detox hypnosis habit habits genetic contagious disease diseases virus_is symptoms_of immune tumor"
     " tumour kidney liver bladder spine muscle muscles tendon ligament cartilage skull ribs elbow thumb_hurts toe"
     " toes nail nails wrinkles eyebrows eyelashes beard moustache haircare skincare sunscreen_for deodorant puberty",
     "medical|medicine|symptom"),
    ("windshield antifreeze steering clutch exhaust_pipe spark_plug carburettor headlight headlights wiper wipers"
     " bumper dashboard_light horsepower_of convertible sedan suv motorbike motorcycle moped tractor caravan camper"
     " trailer_hitch speedometer airbag seatbelt hubcap jumper_cable roadside_assistance",
     "vehicle|mechanic"),
    ("checking_account savings_account money_market cash_advance credit_limit annual_percentage routing_number"
     " account_number transfer_*_dollars transfer_*_euros transfer_*_pounds transfer_funds transfer_money_to"
     " my_savings my_checking my_paycheck my_credit my_mortgage my_loan my_pension my_taxes my_portfolio",
     "bank|loan|investment"),
    ("breed breeds dog_food cat_food dog_breed ducks birds_fly wings insects butterfly butterflies caterpillar worm"
     " worms frog frogs toad hedgehog badger deer moose reindeer camel hippo rhino crocodile alligator seal_pup walrus"
     " salmon_swim trout tadpole nest_box hibernate mammal mammals reptile reptiles species predator prey herd",
     "animal|pet|encyclopedia"),
    ("guitar_string amplifier_for turntable record_player dj_set mixtape lyricist composer conductor_of soprano tenor"
     " baritone falsetto tempo rhythm crescendo treble broadway reality_show reality_shows tv_show tv_shows tv_guide"
     " channel_guide season_finale game_show talk_show quiz_show cast_of",
     "music|television|song"),
    ("odds gambit jackpot_odds poker_hand royal_flush dungeon dungeons dragons checkers backgammon darts billiards"
     " snooker archery fencing_sport judo karate taekwondo gymnastics figure_skating snowboard_trick skateboard"
     " surfboard kayak canoe sprint_record high_jump pole_vault javelin medal_table olympic paralympics quarterback"
     " touchdown offside dribble home_team away_team transfer_fee coach_of best_player top_scorer",
     "game|sport"),
    ("wedding_dress bridesmaid bridesmaids groom bouquet_toss honeymoon_suite baby_names potty potty_training teething"
     " breastfeeding pacifier crib stroller_for toddler toddlers puberty_talk babysitter_for family_tree genealogy"
     " coat_of_arms horoscopes soulmate true_love love_me jealous crush_on cheating_on",
     "childcare|dating|advice"),
    ("eyeliner mascara nail_polish hair_dye hairstyle_for outfit outfits fashion wardrobe_for tuxedo high_heels"
     " handbag sunglasses_for wristwatch jewellery jewelry diamond diamonds ruby pearl pearls gemstone"
     " embroidery_pattern knitting_pattern crochet_pattern fabric silk_dress leather_jacket",
     "fashion|beauty|purchase"),
    ("property_prices house_prices real_estate buy_a_house sell_my_house rent_a_flat flat_hunting roommate_wanted"
     " floorboards double_glazing heat_pump solar_panels wind_turbine nuclear power_plant power_cut power_outage_at"
     " electric_meter gas_meter water_meter smart_meter energy_consumption standby_power",
     "property|energy|meter"),
    ("paint_the sand_down wallpaper_the tile_the retile lay_the_floor put_up_a_shelf put_up_the_shelf build_me"
     " build_a_shed build_a_fence build_a_treehouse dig_the assemble_my unblock unblock_the bleed_the_radiator descale"
     " defrost_the clean_up_my_room clean_the_house sharpen mend_my darn patch_up upholster refinish repaint",
     "craftsman|repair|manual"),
    ("robot_to self_driving artificial_intelligence chatbot chatgpt siri alexa cortana deep_learning training_data"
     " gpu_time image_recognition face_recognition speech_recognition object_detection sentiment_analysis"
     " language_model prompt_for hyperparameters overfitting robotics arduino raspberry circuit_board soldering"
     " transistor oscilloscope voltage resistor breadboard",
     "model|training|robot|electronics"),
    # Deeds
    ("knit_me sew_me bake_me cook_me make_me_a_sandwich make_me_a_coffee make_me_laugh sing_a sing_along dance_with"
     " read_my_mind guess_my guess_the guess_a predict tell_my_fortune entertain impersonate imitate pretend_to_be"
     " roleplay act_as_a debate argue_with flatter comfort_me console_me wake_somebody hypnotize prank prank_call"
     " propose_to flirt_with seduce apologise_to_my_wife",
     "entertainment|creative|story"),
    # Things at hand
    ("knife knives fork_and spoon spoons corkscrew bottle_opener tin_opener broom dustpan bucket_of rope string_of"
     " needle thimble scissors tape_measure glue_stick stapler easel canvas_of toolbox pliers sandpaper crowbar"
     " wheelbarrow rake_up spade shovel_the fence_post doormat coat_hanger ironing ironing_board trousers_pressed"
     " zip_up shoelace shoelaces buttonhole tent_pole sleeping_bag campfire flashlight torch_battery matches_and"
     " mirror_in piano_to sofa_to washing_up bed_linen bedsheet bedsheets fitted_sheet ceiling_lamp stairs_carpet",
     "household|appliance|manual"),
    ("reverb vocals equalizer equaliser bassline drumbeat beat_for synthesizer autotune chord_progression key_change"
     " music_theory screenplay_for storyboard camera_angle lens lenses tripod aperture film_score box_office_of"
     " stand_up_comedy comedian comedians stunt puppet puppets theatre_play ballet_shoes tap_dance tango salsa_steps"
     " breakdance",
     "music|video|dance"),
    ("ethanol boiling_point melting_point freezing_point chemistry_experiment microscope test_tube petri litmus"
     " sulphur helium uranium plutonium isotope radiation radioactive magnet magnetic friction velocity momentum"
     " thermodynamics entropy wavelength frequency_of_a photon quark neutrino ecosystem ecology habitat pollinate"
     " photosynthesise botany zoology geology mineral minerals lava magma crater tide tides high_tide low_tide"
     " moonlight full_moon equinox solstice leap_year",
     "science|encyclopedia"),
    ("jury_duty background_check credit_check custody_of adoption_papers prenuptial bankruptcy foreclosure subpoena"
     " felony misdemeanor shoplifting burglary robbery murder murderer detective_story crime_scene fingerprints"
     " witness_in prison jail parole speed_camera breathalyser neighbours_fence noise_complaint hoa zoning"
     " planning_permission ",
     "legal|court|permit"),
    ("dividends bull_market bear_market day_trading options_trading leverage_ratio margin_call venture_capital"
     " angel_investor ipo startup_idea franchise business_cards business_card logo_on_mugs trade_war tariffs_on"
     " minimum_wage collective_bargaining pension_age retirement_age social_security unemployment_benefit food_stamps",
     "investment|business|purchase"),
    ("cavity cavities root_canal braces_on wisdom_tooth filling_for dentures crutches plaster_cast stitches_out"
     " first_aid cpr choking nosebleed sunstroke_help heatstroke snoring sneeze sneezing itching swelling limp numb"
     " tingling cramps index_finger ring_finger pinky my_finger my_thumb my_toe my_elbow my_lungs my_teeth my_gums"
     " my_tongue my_lips posture stretching jogging_plan cardio biceps triceps abs glutes personal_trainer gym_routine"
     " mindfulness breathing_exercise",
     "medical|fitness|symptom"),
    ("barking bark_at meow purring leash_training potty_train housebroken hounds swallows storks migrate_south"
     " birdsong birdwatching beekeeping honeybee aquarium_filter hamster_wheel dog_sitter cat_sitter pet_hotel"
     " horse_riding saddle_up",
     "pet|animal|sitter"),
    ("tennis_court squash_court golf_course_booking bowling_lane escape_game paintball laser_tag trampoline ferris"
     " rollercoaster roller_coaster theme_park_tickets zoo_tickets fast_pass cloakroom usher banquet seating_plan"
     " seating_chart wedding_ring wedding_rings guestbook party_games pinata bouncy_castle fireworks firecracker"
     " halloween_costume costume costumes santa easter_eggs christmas_tree advent_wreath",
     "leisure|reservation"),
    ("vocabulary_list declension_of latin_inscription inscription hieroglyphs hieroglyphics runes cuneiform"
     " calligraphy handwriting shorthand stenography lip_reading tongue_twisters sign_off_phrase slang dialect"
     " dialects loanword palindromes haiku_about limericks acrostic alliteration metaphor metaphors simile"
     " onomatopoeia rhetorical hyperbole",
     "dictionary|poem|linguistics"),
)  # fmt: skip
