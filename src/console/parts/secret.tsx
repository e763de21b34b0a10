/** A secret, on the only page that ever shows it, with a button that copies it. @param of whose it is */
export function Secret({ of, secret }: { of: string; secret: string }) {
  return (
    <div class="secret">
      <label for="secret">Secret of {of}</label>
      <input id="secret" readonly value={secret} autocomplete="off" spellcheck={false} />
      <button type="button" class="primary" data-copy="secret" hidden>
        Copy
      </button>
      <span role="status"></span>
    </div>
  );
}
