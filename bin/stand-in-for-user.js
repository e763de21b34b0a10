import { userInfo } from 'node:os';

/** oclif asks for this user when it is loaded, and would crash for one unknown to the system, as in containers. */
export function standInForUser() {
  try {
    userInfo();
  } catch {
    process.env.HOME ??= '/';
    process.env.SHELL ??= '/bin/sh';
  }
}
