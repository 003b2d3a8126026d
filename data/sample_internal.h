// What datasets do with whole samples. Internal to data.
#pragma once
#include <binade/data/sample.h>

namespace binade::data {

// A copy that shares no memory: whoever changes it changes nobody else's.
Sample copy_of(const Sample& sample);
Sample copy_without_image(const Sample& sample);
// Makes fields of the boxes (Sample::boxes).
void move_boxes_to_fields(Sample& sample);
// A hash of pixels, values, fields and masks; not of the label.
uint64_t content_hash(const Sample& sample);

}  // namespace binade::data
