import type { Child } from 'hono/jsx';

/** What went wrong, read out at once. */
export function Problem({ children }: { children?: Child }) {
  return (
    <div class="notice problem" role="alert">
      {children}
    </div>
  );
}

/** What was done. */
export function Done({ children }: { children?: Child }) {
  return (
    <div class="notice done" role="status">
      {children}
    </div>
  );
}

/** What to know before doing something. */
export function Warning({ children }: { children?: Child }) {
  return <div class="notice warning">{children}</div>;
}

/** What stands where there is nothing yet: why, and what to do. */
export function Empty({ title, children }: { title: string; children?: Child }) {
  return (
    <div class="empty">
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  );
}

/** Why the service refuses something, to whoever has signed in: there, "this key" is the one that asks. */
export function inYourWords(reason: string): string {
  return reason.replaceAll(/\b([Tt])his key\b/g, (_, first: string) => `${first === 'T' ? 'Y' : 'y'}our key`);
}
