// A pasted document is sent as a file if it is larger than the server reads as text.
(() => {
  "use strict";
  const MAX_BYTES = 2_000_000;
  const area = document.querySelector("textarea[name=document]");
  area?.form.addEventListener("formdata", ({ formData }) => {
    const file = new File([formData.get("document")], "document.txt");
    if (file.size <= MAX_BYTES || formData.get("file").size > 0) return;
    formData.set("document", "");
    formData.set("file", file);
  });
})();
