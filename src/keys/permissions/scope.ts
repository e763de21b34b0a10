/** Roles and permissions in the form of tokens and challenges. */
interface Scope {
  readonly roles: readonly string[];
  readonly permissions: readonly string[];
}

/** The scope item that asks for a key to replace an existing one. @param id that of the existing key */
export function replacing(id: string): string {
  return `key:${id}`;
}

export function scopeItems({ roles, permissions }: Scope): string[] {
  return [...roles.map((role) => `role:${role}`), ...permissions];
}

/** A scope (RFC 6749, section 3.3) as text. */
export function formatScope(scope: Scope): string {
  return scopeItems(scope).join(' ');
}
