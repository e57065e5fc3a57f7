// Everything a user of the library includes.
#pragma once

#include "rlx/lang/graph.h"
#include "rlx/lang/graph_file.h"
#include "rlx/lang/inspect.h"
#include "rlx/lang/module.h"
#include "rlx/lang/trace.h"
#include "rlx/transform/transform.h"
