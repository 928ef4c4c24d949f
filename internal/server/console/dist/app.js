document.getElementById("app").textContent = "sallyport";
