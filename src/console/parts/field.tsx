import type { JSX } from 'hono/jsx';

/** A field of one line, with its label, what to write there, and what is wrong with what was written. */
export function TextField({
  name,
  label,
  help,
  problem,
  ...attributes
}: {
  name: string;
  label: string;
  help?: string;
  problem?: string | undefined;
} & JSX.IntrinsicElements['input']) {
  const described = [problem !== undefined && `${name}-problem`, help !== undefined && `${name}-help`].filter(Boolean);
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        // Nothing of this is about the person who fills it in.
        autocomplete="off"
        aria-describedby={described.length > 0 ? described.join(' ') : undefined}
        aria-invalid={problem === undefined ? undefined : 'true'}
        {...attributes}
      />
      {problem !== undefined && (
        <p id={`${name}-problem`} class="wrong">
          {problem}
        </p>
      )}
      {help !== undefined && (
        <p id={`${name}-help`} class="help">
          {help}
        </p>
      )}
    </div>
  );
}
