/** Something to choose. */
export interface Choice {
  readonly id: string;
  readonly name: string;
  /** What else to show of it. */
  readonly details: string;
}

/** The choices that match a search. */
export interface FoundChoices {
  readonly choices: readonly Choice[];
  /** Whether more match than these. */
  readonly hasMore: boolean;
}

/** A list of which several can be chosen, one by one. What is chosen stays so, whatever the list shows. */
export class ChoiceList {
  #found: FoundChoices;
  #active = 0;
  readonly #chosen = new Map<string, Choice>();

  constructor(found: FoundChoices) {
    this.#found = found;
  }

  get chosen(): readonly Choice[] {
    return [...this.#chosen.values()];
  }

  get hasMore(): boolean {
    return this.#found.hasMore;
  }

  show(found: FoundChoices): void {
    this.#found = found;
    this.#active = 0;
  }

  /** Makes another choice the active one, so many further down, as far as there are any. */
  move(offset: number): void {
    this.#active = Math.max(0, Math.min(this.#active + offset, this.#found.choices.length - 1));
  }

  /** Chooses the active choice, or no longer. */
  toggle(): void {
    const choice = this.#found.choices[this.#active];
    if (choice && !this.#chosen.delete(choice.id)) this.#chosen.set(choice.id, choice);
  }

  /** So many choices, with the active one in the middle where possible. */
  window(size: number): { choice: Choice; isActive: boolean; isChosen: boolean }[] {
    const { choices } = this.#found;
    const start = Math.max(0, Math.min(this.#active - Math.floor(size / 2), choices.length - size));
    return choices.slice(start, start + size).map((choice, index) => ({
      choice,
      isActive: start + index === this.#active,
      isChosen: this.#chosen.has(choice.id),
    }));
  }
}
