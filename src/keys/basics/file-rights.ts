/** The user of this process; undefined on Windows, which has no numbers of users. */
export function processUser(): number | undefined {
  return process.platform === 'win32' ? undefined : process.geteuid?.();
}

/** True for a file of the user of this process. */
export function isOwnFile({ uid }: { readonly uid: number | bigint }): boolean {
  const user = processUser();
  return user === undefined || Number(uid) === user;
}

/**
 * The problem with the rights of a file that holds a secret, and its remedy, if there is one. A file of another user,
 * such as root, can be shared with this user by its group alone.
 */
export function insecureRightsOf(stat: {
  readonly mode: number | bigint;
  readonly uid: number | bigint;
}): string | undefined {
  const [forbidden, remedy] = isOwnFile(stat)
    ? [0o077, 'Run chmod 600 on it']
    : [0o037, 'Run chmod 640 on it, with a group that this user is in'];
  return givesRights(stat, forbidden) ? `can be accessed by other users. ${remedy}` : undefined;
}

/**
 * True if a file grants any of these rights, such as 0o022 for writing by others. Windows has no such rights, and
 * reports all as granted.
 */
export function givesRights({ mode }: { readonly mode: number | bigint }, rights: number): boolean {
  return process.platform !== 'win32' && (Number(mode) & rights) !== 0;
}
