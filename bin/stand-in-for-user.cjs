'use strict';

/** oclif asks for this user when it is loaded, and would crash for one unknown to the system, as in containers. */
exports.standInForUser = function standInForUser() {
  try {
    require('node:os').userInfo();
  } catch {
    process.env.HOME ??= '/';
    process.env.SHELL ??= '/bin/sh';
  }
};
