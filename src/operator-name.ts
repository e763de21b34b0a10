import { userInfo } from 'node:os';

/** The user who runs the process; in a container it may have no name. */
export function operatorName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
