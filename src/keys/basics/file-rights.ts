/** The user of this process; undefined on Windows, which has no numbers of users. */
export function processUser(): number | undefined {
  return process.platform === 'win32' ? undefined : process.geteuid?.();
}

/**
 * True if a file grants any of these rights, such as 0o022 for writing by others. Windows has no such rights, and
 * reports all as granted.
 */
export function givesRights({ mode }: { readonly mode: number | bigint }, rights: number): boolean {
  return process.platform !== 'win32' && (Number(mode) & rights) !== 0;
}
