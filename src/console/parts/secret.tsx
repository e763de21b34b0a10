import { Warning } from './notice.tsx';

/** A secret, on the only page that shows it. @param of whose it is */
export function Secret({ of, secret }: { of: string; secret: string }) {
  return (
    <>
      <Warning>This is the only time that the secret is shown. Put it now where it is to be kept.</Warning>
      <div class="secret">
        <label for="secret">Secret of {of}</label>
        <input id="secret" readonly value={secret} autocomplete="off" spellcheck={false} />
        <button type="button" class="primary" data-copy="secret" hidden>
          Copy
        </button>
        <span role="status"></span>
      </div>
    </>
  );
}
