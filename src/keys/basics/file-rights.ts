/** The user of this process; undefined on Windows, which has no numbers of users. */
export function processUser(): number | undefined {
  return process.platform === 'win32' ? undefined : process.geteuid?.();
}

/**
 * Whether a file gives any of these rights, such as 0o022 to be written by others. Windows keeps none, and shows each file
 * as one that all can use.
 */
export function givesRights({ mode }: { readonly mode: number | bigint }, rights: number): boolean {
  return process.platform !== 'win32' && (Number(mode) & rights) !== 0;
}
