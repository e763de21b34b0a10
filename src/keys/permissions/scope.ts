/** Roles and permissions, as tokens and challenges list them. */
interface Scope {
  readonly roles: readonly string[];
  readonly permissions: readonly string[];
}

/** The item of a scope that asks for a key in the place of this one. @param id that of the key */
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
