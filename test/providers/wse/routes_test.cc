// SPDX-License-Identifier: Apache-2.0
//
// Routes that break a rule of the fabric are found and named with their PE.
#include "providers/wse/place/routes.h"

#include <gtest/gtest.h>

#include <string>

#include "test/providers/wse/values.h"

namespace pfrt::wse::test {
namespace {

class RoutesTest : public testing::Test {
 protected:
  // Expects an error of check() that names |pe| and has |words|.
  void expect_fault(std::string_view pe, std::string_view words) const {
    const std::string fault = routes_.check();
    EXPECT_TRUE(contains(fault, pe) && contains(fault, words)) << "'" << fault << "'";
  }

  // Adds a way in |color| along row |y|, from |first| to |last|.
  void add_line(int color, int64_t first, int64_t last, int64_t y) {
    routes_.add(first, y, color, kRamp, kEast);
    for (int64_t x = first + 1; x < last; ++x) routes_.add(x, y, color, kWest, kEast);
    routes_.add(last, y, color, kWest, kRamp);
  }

  const Machine machine_ = machine_of("wse2");
  Routes routes_{machine_};
};

TEST_F(RoutesTest, no_routes_break_no_rule) {
  EXPECT_EQ(routes_.check(), "");
  EXPECT_EQ(routes_.most_colors(), 0);
}

TEST_F(RoutesTest, a_way_that_closes_breaks_no_rule) {
  routes_.add(4, 7, 2, kRamp, kEast);
  routes_.add(5, 7, 2, kWest, kEast | kRamp);
  routes_.add(6, 7, 2, kWest, kSouth);
  routes_.add(6, 8, 2, kNorth, kRamp);
  EXPECT_EQ(routes_.check(), "");
  EXPECT_EQ(routes_.most_colors(), 1);
}

TEST_F(RoutesTest, a_color_from_two_directions_is_found) {
  add_line(2, 4, 5, 7);
  EXPECT_EQ(routes_.check(), "");
  routes_.add(6, 7, 2, kRamp, kWest);
  EXPECT_TRUE(contains(routes_.check(), "PE (6,7)")) << "nobody takes what it sends";
  routes_.add(5, 7, 2, kEast, kRamp);
  expect_fault("PE (5,7)", "more than one direction");
}

TEST_F(RoutesTest, a_way_that_does_not_close_is_found) {
  routes_.add(4, 7, 2, kRamp, kSouth);
  expect_fault("PE (4,7)", "PE (4,8)");
  expect_fault("color 2", "does not receive");
}

TEST_F(RoutesTest, a_way_that_is_received_in_another_color_is_found) {
  routes_.add(4, 7, 2, kRamp, kNorth);
  routes_.add(4, 6, 3, kSouth, kRamp);
  expect_fault("PE (4,7)", "color 2");
}

TEST_F(RoutesTest, a_way_that_is_received_from_another_side_is_found) {
  routes_.add(4, 7, 2, kRamp, kWest);
  routes_.add(3, 7, 2, kNorth, kRamp);
  expect_fault("PE (4,7)", "PE (3,7)");
}

// "every way in has a way out on the other side": routes.h
TEST_F(RoutesTest, a_way_in_that_nobody_sends_on_is_found) {
  routes_.add(4, 7, 2, kWest, kRamp);
  expect_fault("PE (4,7)", "color 2");
}

TEST_F(RoutesTest, too_many_colors_at_a_pe_are_found) {
  const auto most = static_cast<int>(machine_.free_colors());
  for (int color = 0; color < most; ++color) add_line(color, 49 - color, 51 + color, 9);
  EXPECT_EQ(routes_.check(), "");
  EXPECT_EQ(routes_.most_colors(), most);
  add_line(most, 50, 60, 9);
  expect_fault("PE (50,9)", "19 colors, 18 available");
  EXPECT_EQ(routes_.most_colors(), most + 1);
}

TEST_F(RoutesTest, colors_of_an_algorithm_count) {
  routes_.reserve({48, 0, 10, 10}, 12);
  EXPECT_EQ(routes_.check(), "");
  EXPECT_EQ(routes_.most_colors(), 12);
  for (int color = 12; color < 18; ++color) add_line(color, 59 - color, 43 + color, 5);
  EXPECT_EQ(routes_.check(), "");
  EXPECT_EQ(routes_.most_colors(), 18);
  add_line(18, 50, 51, 5);
  expect_fault("PE (50,5)", "19 colors, 18 available");
}

// "colors, from 0 on, that an algorithm has on every PE of |rect| for itself": routes.h
TEST_F(RoutesTest, a_route_in_a_color_of_an_algorithm_is_found) {
  routes_.reserve({0, 0, 10, 10}, 4);
  routes_.add(5, 5, 3, kRamp, kEast);
  routes_.add(6, 5, 3, kWest, kRamp);
  expect_fault("PE (5,5)", "color 3");
}

TEST_F(RoutesTest, too_many_output_queues_are_found) {
  // A PE has 6 queues, and the host's traffic takes one of them.
  for (int color = 0; color < 5; ++color) add_line(color, 1, 2 + color, 1);
  EXPECT_EQ(routes_.check(), "");
  add_line(5, 1, 20, 1);
  expect_fault("PE (1,1)", "6 output queues");
}

TEST_F(RoutesTest, too_many_input_queues_are_found) {
  for (int color = 0; color < 5; ++color) add_line(color, 2 + color, 9, 1);
  EXPECT_EQ(routes_.check(), "");
  add_line(5, 8, 9, 1);
  expect_fault("PE (9,1)", "6 input");
}

TEST(RoutesOfMachines, queues_are_those_of_the_machine) {
  const Machine machine = machine_of("wse3");  // it has 8, and the host's traffic takes 2
  Routes routes(machine);
  for (int color = 0; color < 7; ++color) {
    EXPECT_EQ(routes.check(), "") << color;
    routes.add(1, 1, color, kRamp, kSouth);
    for (int64_t y = 2; y < 3 + color; ++y) routes.add(1, y, color, kNorth, kSouth);
    routes.add(1, 3 + color, color, kNorth, kRamp);
  }
  EXPECT_TRUE(contains(routes.check(), "PE (1,1) needs 0 input and 7 output")) << routes.check();
}

TEST_F(RoutesTest, a_rectangle_outside_the_usable_one_is_found) {
  for (const Rect& rect :
       {Rect{0, 0, 751, 1}, Rect{0, 0, 1, 995}, Rect{749, 0, 2, 2}, Rect{0, 993, 1, 2},
        Rect{-1, 0, 2, 2}, Rect{0, -1, 2, 2}, Rect{}, Rect{0, 0, 1, 0}}) {
    Routes routes(machine_);
    routes.reserve({0, 0, 750, 994}, 1);
    EXPECT_EQ(routes.check(), "");
    routes.reserve(rect, 1);
    const std::string fault = routes.check(),
                      named = message("(", rect.x, ",", rect.y, ") leaves the usable 750x994");
    EXPECT_TRUE(contains(fault, named)) << "'" << fault << "' lacks " << named;
  }
}

TEST_F(RoutesTest, a_pe_outside_the_usable_rectangle_is_found) {
  for (const auto& [x, y] : std::vector<std::pair<int64_t, int64_t>>{
           {750, 0}, {0, 994}, {-1, 5}, {5, -1}, {-3, -3}, {10000, 10000}}) {
    Routes routes(machine_);
    routes.add(x, y, 0, kRamp, 0);
    const std::string fault = routes.check(), named = message("PE (", x, ",", y, ")");
    EXPECT_TRUE(contains(fault, named) && contains(fault, "outside")) << "'" << fault << "'";
  }
}

TEST_F(RoutesTest, a_way_over_the_rim_is_found) {
  routes_.add(0, 3, 1, kRamp, kWest);
  expect_fault("PE (0,3)", "PE (-1,3)");
}

TEST_F(RoutesTest, a_color_out_of_range_is_found) {
  routes_.add(3, 3, 24, kRamp, 0);
  expect_fault("PE (3,3)", "color 24; a machine has 0 to 23");
  Routes negative(machine_);
  negative.add(3, 4, -1, kRamp, 0);
  EXPECT_TRUE(contains(negative.check(), "PE (3,4)")) << negative.check();
}

TEST_F(RoutesTest, streams_take_colors_that_are_free) {
  std::string fault;
  // These cross each other, share a row, and go from a rectangle to itself.
  EXPECT_TRUE(routes_.connect({0, 0, 4, 4}, {20, 0, 4, 4}, &fault));
  EXPECT_EQ(routes_.most_colors(), 1);
  EXPECT_TRUE(routes_.connect({0, 0, 4, 4}, {40, 0, 4, 4}, &fault));
  EXPECT_EQ(routes_.most_colors(), 2);
  EXPECT_TRUE(routes_.connect({30, 10, 4, 4}, {0, 0, 4, 4}, &fault));
  EXPECT_TRUE(routes_.connect({8, 0, 2, 2}, {8, 12, 2, 2}, &fault));
  EXPECT_TRUE(routes_.connect({60, 60, 4, 4}, {60, 60, 4, 4}, &fault));
  EXPECT_EQ(routes_.check(), "");
  EXPECT_EQ(fault, "");
}

TEST_F(RoutesTest, streams_leave_the_colors_of_algorithms_alone) {
  routes_.reserve({0, 0, 10, 10}, 12);
  routes_.reserve({10, 0, 10, 10}, 10);
  std::string fault;
  EXPECT_TRUE(routes_.connect({0, 0, 10, 10}, {10, 0, 10, 10}, &fault));
  EXPECT_EQ(routes_.check(), "");
  EXPECT_EQ(routes_.most_colors(), 13);
}

TEST_F(RoutesTest, a_stream_without_a_free_color_names_the_pe) {
  routes_.reserve({30, 0, 3, 3}, 18);
  std::string fault;
  EXPECT_FALSE(routes_.connect({20, 0, 3, 3}, {40, 0, 3, 3}, &fault));
  EXPECT_TRUE(contains(fault, "PE (30,1) needs 19 colors, 18 available (24 minus 6 reserved"))
      << fault;
  EXPECT_EQ(routes_.check(), "");
  EXPECT_EQ(routes_.most_colors(), 18);
  // There is room around it.
  EXPECT_TRUE(routes_.connect({20, 10, 3, 3}, {40, 10, 3, 3}, &fault));
}

TEST_F(RoutesTest, as_many_streams_pass_a_pe_as_it_has_colors) {
  std::string fault;
  for (int i = 0; i < 18; ++i) {
    // Each stream has PEs of its own at its ends, and passes (50,50).
    const Rect from{50 - 1 - i, 50, 1, 1}, to{50 + 1 + i, 50, 1, 1};
    EXPECT_TRUE(routes_.connect(from, to, &fault)) << i << " " << fault;
  }
  EXPECT_FALSE(routes_.connect({50, 50, 1, 1}, {51, 50, 1, 1}, &fault));
  EXPECT_TRUE(contains(fault, "PE (50,50)")) << fault;
  EXPECT_EQ(routes_.most_colors(), 18);
}

// Each PE has room, but no color is free all along, and the error does not contradict itself.
TEST_F(RoutesTest, a_stream_without_one_color_that_is_free_all_along_says_so) {
  for (int color = 0; color < 9; ++color) add_line(color, 99 - color, 101, 1);
  for (int color = 9; color < 18; ++color) add_line(color, 103, 96 + color, 1);
  std::string fault;
  EXPECT_FALSE(routes_.connect({100, 1, 1, 1}, {104, 1, 1, 1}, &fault));
  EXPECT_TRUE(contains(fault, "PE (10")) << fault;
  EXPECT_FALSE(contains(fault, "needs 10 colors, 18 available")) << fault;
}

}  // namespace
}  // namespace pfrt::wse::test
