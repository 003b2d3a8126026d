// The umbrella header: all of Binade's public interface.
#pragma once
